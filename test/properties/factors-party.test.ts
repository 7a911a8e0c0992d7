import { deepStrictEqual, ok, rejects } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Outcome } from '../../lib/sign-in/sign-ins.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { type StartOptions, type TestKit, type TestPasskey, type TestTotp, startIdentity } from '../../testing/index.ts'
import type { TestMail } from '../../testing/mails.ts'
import { unique } from '../helpers/people.ts'
import { checkProperty } from '../helpers/property.ts'
import { forEachEngine } from '../helpers/stores.ts'

const HOST = 'id.example.com'
const OPERATOR = { user_id: 'operator', isAdmin: true }
const MOST = 3

/** What the operator may set. `party` is what follows for passkeys: undefined where they are off. */
const SETTINGS: { options: StartOptions, party?: string }[] = [
  { options: {}, party: HOST },
  { options: { relyingParty: 'example.com' }, party: 'example.com' },
  { options: { passkeys: false } },
  { options: { factors: 'required' }, party: HOST },
  { options: { factors: { roles: ['ops'] }, relyingParty: 'example.com' }, party: 'example.com' },
  { options: { factors: { roles: ['ops'] } }, party: HOST },
  { options: { factors: 'required', passkeys: false } }
]

type Act = { op: 'passkey', uv: boolean } | { op: 'app' } | { op: 'remove', which: number } | { op: 'drop' } | { op: 'mail' } | { op: 'role', held: boolean } | { op: 'restart', setting: number }

const acts = fc.array(fc.oneof(
  { weight: 4, arbitrary: fc.boolean().map((uv): Act => ({ op: 'passkey', uv })) },
  { weight: 1, arbitrary: fc.constant<Act>({ op: 'app' }) },
  { weight: 3, arbitrary: fc.nat(MOST).map((which): Act => ({ op: 'remove', which })) },
  { weight: 3, arbitrary: fc.constant<Act>({ op: 'drop' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ op: 'mail' }) },
  { weight: 1, arbitrary: fc.boolean().map((held): Act => ({ op: 'role', held })) },
  { weight: 4, arbitrary: fc.nat(SETTINGS.length - 1).map((setting): Act => ({ op: 'restart', setting })) }
), { minLength: 4, maxLength: 9 })

type Factor = { id: string, app: TestTotp } | { id: string, key: TestPasskey, uv: boolean, party: string }

/** A person, and what they should be able to do, worked out without the code of the service. */
class Person {
  readonly #kits: TestKit[]
  readonly #user_id: string
  readonly #account: string
  #setting = 0
  #isOps = false
  #password: string | undefined = 'the first one'
  #factors: Factor[] = []

  private constructor (kits: TestKit[], user_id: string, account: string) {
    this.#kits = kits
    this.#user_id = user_id
    this.#account = account
  }

  static async create (kits: TestKit[]): Promise<Person> {
    const account = `${unique('ann')}@example.com`
    const { user_id } = await kits[0]!.app.identity.users.create({ data: { account, password: 'the first one' } })
    return new Person(kits, user_id, account)
  }

  get #kit () { return this.#kits[this.#setting]! }

  get #identity () { return this.#kit.app.identity }

  #counts (factor: Factor): boolean {
    return 'app' in factor || factor.party === SETTINGS[this.#setting]!.party
  }

  #demands (factors: Factor[]): boolean {
    const { factors: policy } = SETTINGS[this.#setting]!.options
    return policy === 'required' || (typeof policy === 'object' && this.#isOps) || factors.some((factor) => this.#counts(factor))
  }

  /** Whether they get in by themselves with these ways, without adding one. */
  #getsIn (password: string | undefined, factors: Factor[]): boolean {
    const counting = factors.filter((factor) => this.#counts(factor))
    if (counting.some((factor) => 'key' in factor && factor.uv)) return true
    return password !== undefined && (counting.length > 0 || !this.#demands(factors))
  }

  async #actor () {
    const { epoch } = (await this.#identity.store.collection<UserRecord>('users').get(this.#user_id))!
    return { user_id: this.#user_id, isAdmin: false, epoch }
  }

  async #readToken (path: string): Promise<string> {
    const mails: TestMail[] = []
    // One of these processes publishes, and whichever finds a mail sends it.
    for (const kit of this.#kits) mails.push(...await kit.mails.all())
    const links = mails.filter(({ to }) => to === this.#account).map(({ link = '' }) => link)
    return new URL(links.findLast((link) => link.includes(`/${path}?token=`))!).searchParams.get('token')!
  }

  async run (act: Act): Promise<void> {
    if (act.op === 'restart') this.#setting = act.setting
    else if (act.op === 'passkey') await this.#addPasskey(act.uv)
    else if (act.op === 'app') await this.#addApp()
    else if (act.op === 'remove') await this.#remove(this.#factors[act.which])
    else if (act.op === 'drop') await this.#drop()
    else if (act.op === 'mail') await this.#mail()
    else {
      await this.#identity.users.patch(this.#user_id, { data: { roles: act.held ? { ops: true } : {} } }, OPERATOR)
      this.#isOps = act.held
    }
  }

  async #addPasskey (uv: boolean): Promise<void> {
    const { party } = SETTINGS[this.#setting]!
    if (party === undefined) return await rejects(this.#kit.passkey(this.#user_id), /passkeys are off/)
    if (this.#factors.length === MOST) return
    const key = await this.#kit.passkey(this.#user_id, { uv })
    this.#factors.push({ id: key.id, key, uv, party })
  }

  async #addApp (): Promise<void> {
    if (this.#factors.length === MOST) return
    const app = await this.#kit.totp(this.#user_id)
    this.#factors.push({ id: app.id, app })
  }

  /** What does not count may always go; else the person must get in with what is left. */
  async #remove (factor: Factor | undefined): Promise<void> {
    if (factor === undefined) return
    const rest = this.#factors.filter((one) => one !== factor)
    const removed = this.#identity.heldFactors.remove(await this.#actor(), factor.id, { isEnd: false })
    if (this.#counts(factor) && !this.#getsIn(this.#password, rest)) return await rejects(removed, { refusal: 'last' })
    await removed
    this.#factors = rest
  }

  async #drop (): Promise<void> {
    if (this.#password === undefined) return
    const removed = this.#identity.accounts.removePassword(await this.#actor())
    if (!this.#getsIn(undefined, this.#factors)) return await rejects(removed, { refusal: 'last' })
    await removed
    this.#password = undefined
  }

  async #mail (): Promise<void> {
    await this.#identity.accounts.recoverUser(this.#user_id, OPERATOR)
    const password = unique('another')
    await this.#identity.accounts.setPassword(await this.#readToken('reset'), password)
    this.#password = password
  }

  async #submit (secret: string, form: Record<string, string>, choice?: string): Promise<Outcome> {
    const attempt = { form: new URLSearchParams(form), turn: {}, limit: async () => undefined }
    return await this.#identity.signIns.submit(secret, attempt, choice === undefined ? {} : { choice })
  }

  async #type (secret: string): Promise<Outcome> {
    return await this.#submit(secret, { account: this.#account, password: this.#password ?? 'the first one' })
  }

  /** Where passkeys are off, the challenge comes from an instance that has not been restarted. */
  async #sign (secret: string, key: TestPasskey, isFirst: boolean): Promise<Outcome> {
    const { passkeys } = (SETTINGS[this.#setting]!.party === undefined ? this.#kits[0]! : this.#kit).app.identity
    const options = isFirst ? await passkeys.ask('begin', secret) : await passkeys.ask('second', secret, this.#user_id)
    return await this.#submit(secret, { assertion: key.answer(options) }, 'passkey')
  }

  async #prove (secret: string, factor: Factor): Promise<Outcome> {
    if ('key' in factor) return await this.#sign(secret, factor.key, false)
    for (const { clock } of this.#kits) clock.advance(90_000)
    return await this.#submit(secret, { code: await factor.app.code() }, 'totp')
  }

  /** Tries each way, alone and after the password. Returns whether the person gets in, or is asked to add a factor. */
  async check (): Promise<boolean> {
    const counting = this.#factors.filter((factor) => this.#counts(factor))
    const isDemanded = this.#demands(this.#factors)
    const strengths: string[] = []
    const see = (outcome: Outcome): 'in' | 'enrol' | 'more' | 'refused' => {
      if ('done' in outcome) strengths.push(outcome.done.strength.acr)
      return 'done' in outcome ? 'in' : !('next' in outcome) ? 'refused' : outcome.next.step.page === 'enrol' ? 'enrol' : 'more'
    }

    const typed = see(await this.#type(unique('typed')))
    deepStrictEqual(typed, this.#password === undefined ? 'refused' : !isDemanded ? 'in' : counting.length === 0 ? 'enrol' : 'more', 'a password alone')
    for (const factor of this.#factors) {
      const does = this.#counts(factor)
      if ('key' in factor) {
        const secret = unique('first')
        const first = see(await this.#sign(secret, factor.key, true))
        if (does && this.#password === undefined && !factor.uv) ok(first !== 'in', 'a passkey alone that has not verified the person')
        else if (does) deepStrictEqual(first, factor.uv ? 'in' : 'more', 'a passkey alone')
        else ok(first === 'refused' || first === 'more', 'a passkey that does not count')
        if (!does) deepStrictEqual(see(await this.#type(secret)), typed, 'it has proved nothing')
        else if (!factor.uv) deepStrictEqual(see(await this.#type(secret)), this.#password === undefined ? 'refused' : 'in', 'a password after it')
      }
      if (typed !== 'more') continue
      const secret = unique('second')
      await this.#type(secret)
      const second = see(await this.#prove(secret, factor))
      ok(does ? second === 'in' : second === 'refused' || second === 'more', 'a factor after the password')
    }
    if (isDemanded) ok(strengths.every((acr) => acr !== '1'), 'nobody gets in with less than is demanded')
    const isIn = strengths.length > 0
    deepStrictEqual(isIn, this.#getsIn(this.#password, this.#factors))
    return isIn || typed === 'enrol'
  }

  /** An administrator resets the factors and has a link for a new password mailed. */
  async rescue (): Promise<void> {
    const { sent } = await this.#identity.heldFactors.reset(this.#user_id, OPERATOR)
    const link = sent === true ? await this.#readToken('enrol') : undefined
    this.#factors = []
    await this.#mail()
    const secret = unique('rescued')
    if (link !== undefined) await this.#identity.signIns.carryLink(secret, (await this.#identity.accounts.inspectEnrolLink(link)).enrolment)
    const outcome = await this.#type(secret)
    if (this.#demands([])) deepStrictEqual('next' in outcome && outcome.next.step.page, 'enrol')
    else deepStrictEqual('done' in outcome && outcome.done.strength.acr, '1')
  }
}

t.test('random changes of the relying party, of passkeys and of other ways: foreign passkeys count as none, nobody gets in with less than is demanded, and an administrator helps whoever is locked out', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    const time = Date.now()
    const kits = await Promise.all(SETTINGS.map(async ({ options }) => await startIdentity({ t, store, time, oidc: { issuer: `https://${HOST}` }, ...options })))
    /** Resolves to whether the person has a way in by themselves until the end. In whichever state it ends, an administrator gives one. */
    async function walk (list: readonly Act[]): Promise<boolean> {
      const person = await Person.create(kits)
      let hasWay = true
      for (const act of list) {
        await person.run(act)
        hasWay = await person.check()
        if (!hasWay) break
      }
      await person.rescue()
      return hasWay
    }

    t.notOk(await walk([{ op: 'passkey', uv: true }, { op: 'drop' }, { op: 'restart', setting: 1 }]), 'of whom nothing but a foreign passkey is left')
    await checkProperty(t, 6, fc.asyncProperty(acts, async (list) => { await walk(list) }))
  })
})
