import { deepStrictEqual, ok, rejects } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { TOTP } from 'otpauth'
import type { IdentityOptions } from '../../index.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { EnrolView } from '../../lib/sign-in/steps/step.ts'
import type { Outcome } from '../../lib/sign-in/sign-ins.ts'
import type { TestKit } from '../../testing/index.ts'
import { startIdentity } from '../../testing/index.ts'
import type { TestMail } from '../../testing/mails.ts'
import { checkProperty } from '../helpers/property.ts'
import { unique } from '../helpers/people.ts'
import { forEachEngine } from '../helpers/stores.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'

/** What may happen to one person, in any order. */
type Act =
  | { op: 'add' }
  | { op: 'enrol' }
  | { op: 'reset' }
  | { op: 'mail' }
  | { op: 'undo' }
  | { op: 'move' }
  | { op: 'undo the first' }
  | { op: 'drop' }
  | { op: 'remove', which: number, isEnd: boolean }
  | { op: 'role', held: boolean }
  | { op: 'policy', policy: number }

const POLICIES: (IdentityOptions['factors'] & unknown)[] = ['optional', 'off', 'required', { roles: ['ops'] }]
const MOST = 3
const BY_PASSWORD = [{ way: 'password', kind: 'password', at: '2126-01-01T00:00:00.000Z' }] as const
const BY_FACTOR = { way: '', kind: 'totp', at: '2126-01-01T00:00:00.000Z' } as const
const OPERATOR = { user_id: 'operator', isAdmin: true }

const act = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Act>({ op: 'add' }) },
  { weight: 3, arbitrary: fc.record({ which: fc.nat(2), isEnd: fc.boolean() }).map((more): Act => ({ op: 'remove', ...more })) },
  { weight: 3, arbitrary: fc.constant<Act>({ op: 'enrol' }) },
  { weight: 2, arbitrary: fc.constant<Act>({ op: 'reset' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ op: 'mail' }) },
  { weight: 2, arbitrary: fc.constantFrom<Act>({ op: 'undo' }, { op: 'undo the first' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ op: 'move' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ op: 'drop' }) },
  { weight: 3, arbitrary: fc.boolean().map((held): Act => ({ op: 'role', held })) },
  { weight: 2, arbitrary: fc.constantFrom(0, 1, 2, 3, 3, 3).map((policy): Act => ({ op: 'policy', policy })) }
)
const acts = fc.array(act, { minLength: 3, maxLength: 10 })

/** The service under each policy, over one store: a restart with another one. */
class World {
  readonly #kits: TestKit[]
  readonly user_id: string
  readonly account: string
  policy = 0
  password = 'the first one'
  isOps = false
  factors: { id: string, seed: string }[] = []
  codes: string[] = []
  /** An authenticator app that was removed: its codes are good for nothing. */
  gone: { seed: string } | undefined
  /** The token of the link with which alone a factor is added, after a reset while one is demanded. */
  link: string | undefined
  mailbox: string
  /** What can be undone, the last one last: its link, whose mailbox has it, and which factors go with it. */
  undos: { token: string, mailbox: string, added: string[] }[] = []

  private constructor (kits: TestKit[], user_id: string, account: string) {
    this.#kits = kits
    this.user_id = user_id
    this.account = account
    this.mailbox = account
  }

  static async create (kits: TestKit[]): Promise<World> {
    const account = `${unique('ann')}@example.com`
    const { user_id } = await kits[0]!.app.identity.users.create({ data: { account, password: 'the first one' } })
    return new World(kits, user_id, account)
  }

  /** The token of the mail to an address whose link has this path. */
  async #readToken (to: string, path: string): Promise<string> {
    return (await this.#readTokens(to, path))[0]!
  }

  /** The same for each path, of the mails that have come since the last call. */
  async #readTokens (to: string, ...paths: string[]): Promise<(string | undefined)[]> {
    const mails: TestMail[] = []
    // One of these processes publishes, and whichever finds a mail sends it.
    for (const kit of this.#kits) mails.push(...await kit.mails.all())
    const links = mails.filter((mail) => mail.to === to).map(({ link = '' }) => link)
    return paths.map((path) => URL.parse(links.find((link) => link.includes(`/${path}?token=`)) ?? '')?.searchParams.get('token') ?? undefined)
  }

  get identity () { return this.#kits[this.policy]!.app.identity }

  get #isDemanded (): boolean {
    const policy = POLICIES[this.policy]
    return policy === 'required' || (typeof policy === 'object' && this.isOps)
  }

  async read (): Promise<UserRecord> {
    return (await this.identity.store.collection<UserRecord>('users').get(this.user_id))!
  }

  /** A code that was not used yet. */
  code ({ seed }: { seed: string }): string {
    for (const { clock } of this.#kits) clock.advance(90_000)
    return new TOTP({ secret: seed }).generate({ timestamp: this.#kits[0]!.clock.now() })
  }

  async submit (secret: string, fields: Record<string, string>): Promise<Outcome> {
    const { way, ...form } = fields
    const attempt = { form: new URLSearchParams(form), turn: {}, limit: async () => undefined }
    return await this.identity.signIns.submit(secret, attempt, way === undefined ? {} : { choice: way })
  }

  async begin (secret: string): Promise<Outcome> {
    return await this.submit(secret, { account: this.account, password: this.password })
  }

  async #add (): Promise<void> {
    const { factors } = this.identity
    const { epoch } = await this.read()
    const actor = { user_id: this.user_id, epoch, proofs: this.factors.length === 0 ? BY_PASSWORD : [...BY_PASSWORD, { ...BY_FACTOR, way: this.factors[0]!.id }] }
    if (POLICIES[this.policy] === 'off') return await rejects(factors.beginTotp(actor, this.account), { code: 'ErrPerm' })
    const { id, seed } = await factors.beginTotp(actor, this.account)
    ok(await factors.proveTotp(actor, id, this.code({ seed })))
    const set = this.factors.length === 0 ? await factors.prepareCodes(actor) : undefined
    const named = factors.addFactor(actor, [id, ...(set === undefined ? [] : [set.id])])
    if (this.factors.length === MOST) return await rejects(named, { code: 'ErrPerm' })
    if (this.link !== undefined && this.#isDemanded) return await rejects(named, { code: 'ErrTicket' })
    await named
    await this.#keep({ id, seed }, set?.codes)
  }

  async #keep (factor: { id: string, seed: string }, codes?: string[]): Promise<void> {
    if (this.factors.length === 0) {
      this.link = undefined
      this.undos.push({ token: await this.#readToken(this.mailbox, 'undo'), mailbox: this.mailbox, added: [factor.id] })
    } else this.undos.find(({ added }) => added.includes(this.factors[0]!.id))?.added.push(factor.id)
    this.factors.push(factor)
    if (codes !== undefined) this.codes = codes
  }

  /** A sign-in that adds the first factor if one is demanded, with the link if that is demanded. */
  async #enrol (): Promise<void> {
    const secret = unique('enrol')
    if (this.link !== undefined) await this.identity.signIns.carryLink(secret, (await this.identity.accounts.inspectEnrolLink(this.link)).enrolment)
    const first = await this.begin(secret)
    const isDue = this.#isDemanded && this.factors.length === 0
    deepStrictEqual('next' in first && first.next.step.page === 'enrol', isDue)
    if (!isDue) return
    const view = await this.#show(secret, { way: 'totp' })
    const { id, seed } = view as Extract<EnrolView, { at: 'app' }>
    const { codes } = await this.#show(secret, { way: 'totp', code: this.code({ seed }) }) as Extract<EnrolView, { at: 'codes' }>
    deepStrictEqual((await this.read()).ways, undefined, 'nothing is named before the codes were kept')
    const done = await this.submit(secret, { way: 'totp', kept: 'yes' })
    deepStrictEqual('done' in done && done.done.strength.acr, 'mfa')
    await this.#keep({ id, seed }, codes)
  }

  async #show (secret: string, fields: Record<string, string>): Promise<EnrolView | undefined> {
    const outcome = await this.submit(secret, fields)
    return 'next' in outcome ? outcome.next.view : undefined
  }

  /** Any link takes every factor that was added since the first act that can be undone, and sets the address to what it was before its own. */
  async #undo (used: World['undos'][number] | undefined): Promise<void> {
    if (used === undefined) return
    await this.identity.accounts.undo(used.token)
    const hadOne = this.factors.length > 0 || this.link !== undefined
    const gone = this.undos.flatMap(({ added }) => added)
    this.factors = this.factors.filter(({ id }) => !gone.includes(id))
    if (this.factors.length === 0) this.codes = []
    // Whose link was the first one has the last word.
    this.undos = this.undos[0]!.mailbox === used.mailbox ? [] : this.undos.slice(0, this.undos.indexOf(used))
    this.mailbox = used.mailbox
    ok(!(await this.read()).password, 'the password is gone')
    const [reset, enrol] = await this.#readTokens(this.mailbox, 'reset', 'enrol')
    deepStrictEqual(enrol !== undefined, hadOne && this.factors.length === 0 && this.#isDemanded, 'the next factor needs a link where the last one went')
    this.link = enrol
    this.password = unique('recovered')
    await this.identity.accounts.setPassword(reset!, this.password)
  }

  async #move (): Promise<void> {
    const { accounts } = this.identity
    const address = `${unique('moved')}@example.com`
    if (!await accounts.changeAddress(this.user_id, address).then(() => true, ({ code }) => code !== 'ErrLimit')) return
    await accounts.verifyAddress(await this.#readToken(address, 'verify'), this.user_id)
    this.undos.push({ token: await this.#readToken(this.mailbox, 'undo'), mailbox: this.mailbox, added: [] })
    this.mailbox = address
  }

  async #remove (which: number, isEnd: boolean): Promise<void> {
    const factor = this.factors[which]
    const { heldFactors } = this.identity
    const actor = { user_id: this.user_id, isAdmin: false, epoch: (await this.read()).epoch }
    const removed = heldFactors.remove(actor, factor?.id ?? 'none', { isEnd })
    if (factor === undefined) return await rejects(removed, { code: 'ErrNotFound' })
    if (this.factors.length === 1 && this.#isDemanded) return await rejects(removed, { code: 'ErrPerm', refusal: 'last' })
    await removed
    this.gone = factor
    this.factors = this.factors.filter((one) => one !== factor)
    if (this.factors.length === 0) this.codes = []
  }

  async #reset (): Promise<void> {
    const { removed, sent } = await this.identity.heldFactors.reset(this.user_id, OPERATOR)
    deepStrictEqual([removed, sent], [this.factors.length, this.#isDemanded ? true : undefined], 'with a link only where one is demanded')
    this.link = sent === true ? await this.#readToken(this.mailbox, 'enrol') : undefined
    this.gone = this.factors[0] ?? this.gone
    this.factors = []
    this.codes = []
  }

  /** A new password by a link: it removes no factor. */
  async #mail (): Promise<void> {
    await this.identity.accounts.recoverUser(this.user_id, OPERATOR)
    this.password = unique('another')
    await this.identity.accounts.setPassword(await this.#readToken(this.mailbox, 'reset'), this.password)
  }

  async run (act: Act): Promise<void> {
    if (act.op === 'add') await this.#add()
    else if (act.op === 'remove') await this.#remove(act.which, act.isEnd)
    else if (act.op === 'reset') await this.#reset()
    else if (act.op === 'enrol') await this.#enrol()
    else if (act.op === 'undo') await this.#undo(this.undos.at(-1))
    else if (act.op === 'move') await this.#move()
    else if (act.op === 'undo the first') await this.#undo(this.undos[0])
    else if (act.op === 'drop') await rejects(this.identity.accounts.removePassword({ user_id: this.user_id, epoch: (await this.read()).epoch }), { refusal: 'last' })
    else if (act.op === 'mail') await this.#mail()
    else if (act.op === 'policy') this.policy = act.policy
    else {
      const { epoch } = await this.read()
      const isEnded = act.held && !this.isOps && this.factors.length === 0 && typeof POLICIES[this.policy] === 'object'
      await this.identity.users.patch(this.user_id, { data: { roles: act.held ? { ops: true } : {} } }, OPERATOR)
      this.isOps = act.held
      deepStrictEqual((await this.read()).epoch, epoch + Number(isEnded), 'the role ends the sessions of somebody without a factor')
    }
  }

  /** What a sign-in does now: it lets in with what is demanded, and with nothing less. */
  async check (): Promise<void> {
    const secret = unique('secret')
    const first = await this.begin(secret)
    if (this.factors.length === 0) {
      if (!this.#isDemanded) deepStrictEqual('done' in first && first.done.strength.acr, '1')
      else if (this.link === undefined) deepStrictEqual('next' in first && first.next.step.page, 'enrol')
      else {
        deepStrictEqual('again' in first && first.refused.reason, 'missing')
        await this.identity.signIns.carryLink(secret, (await this.identity.accounts.inspectEnrolLink(this.link)).enrolment)
        const linked = await this.begin(secret)
        deepStrictEqual('next' in linked && linked.next.step.page, 'enrol')
      }
      return
    }
    ok('next' in first, 'a factor is asked for')
    if (this.gone !== undefined) ok('again' in await this.submit(secret, { code: this.code(this.gone) }), 'the app was removed')
    const [recovery] = this.codes
    const useCode = recovery !== undefined && this.codes.length % 2 === 0
    const second = await this.submit(secret, useCode ? { way: 'recovery', code: recovery } : { code: this.code(this.factors.at(-1)!) })
    deepStrictEqual('done' in second && second.done.strength.acr, 'mfa')
    if (!useCode) return
    this.codes.shift()
    await this.begin(secret)
    ok('again' in await this.submit(secret, { way: 'recovery', code: recovery }), 'a code is good once')
    ok('done' in await this.submit(secret, { way: 'totp', code: this.code(this.factors[0]!) }))
  }

  /** Does something between the two steps of a sign-in. */
  async between (act: Act): Promise<void> {
    const factor = this.factors[0]
    const secret = unique('between')
    const { epoch } = await this.read()
    if (factor !== undefined) ok('next' in await this.begin(secret))
    await this.run(act)
    if (factor === undefined) return
    const stands = (await this.read()).epoch === epoch && this.factors.includes(factor)
    const outcome = await this.submit(secret, { code: this.code(factor) })
    deepStrictEqual('done' in outcome, stands, 'it goes on if nothing that it rests on has changed')
    if ('done' in outcome) deepStrictEqual(outcome.done.strength.acr, 'mfa')
  }
}

t.test('random changes of factors, roles, passwords and the policy: nobody gets in with less than is demanded, and nobody is locked out for ever', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    const time = Date.now()
    const kits = await Promise.all(POLICIES.map(async (factors) => await startIdentity({ t, store, factors, time, oidc: { issuer: 'https://id.example' } })))
    await checkProperty(t, 6, fc.asyncProperty(acts, async (list) => {
      const world = await World.create(kits)
      for (const act of list) {
        await world.between(act)
        await world.check()
      }
      // Whatever has happened: an administrator resets the factors, and the person is in, with a new one where it is demanded.
      await world.run({ op: 'reset' })
      await world.run({ op: 'enrol' })
      await world.check()
    }))
  })
})
