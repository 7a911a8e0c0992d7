import t, { type Test } from 'tap'
import type { Services } from '../../lib/identity.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store } from '../../lib/store/port.ts'
import type { DeliveryRecord } from '../../lib/mail/delivery.ts'
import type { Message } from '../../lib/mail/port.ts'
import { settleMails } from '../helpers/mails.ts'
import { openPlainServices } from '../helpers/plain-services.ts'
import { forEachEngine } from '../helpers/stores.ts'
import { type Around, isListing, wrapStore } from '../helpers/wrap-store.ts'

t.setTimeout(240_000)

const ANN = 'ann@example.com'
const ADMIN = { user_id: 'admin', isAdmin: true }
const HOUR = 60 * 60_000
const WRITES = ['insert', 'insertMany', 'update', 'put', 'delete', 'deleteMany']

/** What the mail server answers to each mail, in turn; then it takes all. */
type Answers = (Error | 'taken')[]

const busy = (): Error => Object.assign(new Error('busy'), { responseCode: 450 })
const refused = (): Error => Object.assign(new Error('no such mailbox'), { responseCode: 550 })

/** Services with a mail server, and a clock of their own. */
function openScene (t: Pick<Test, 'teardown'>, store: Store) {
  const sent: Message[] = []
  const answers: Answers = []
  const clock = { skew: 0 }
  const accounts = {
    getIssuer: () => new URL('https://id.example'),
    serviceName: 'Id',
    signUp: true,
    mail: {
      local: true,
      async send (message: Message) {
        const answer = answers.shift()
        if (answer instanceof Error) throw answer
        sent.push(message)
      }
    }
  }
  return {
    sent,
    answers,
    clock,
    async open (around: Around = (_call, run) => run()): Promise<Services> {
      const services = await openPlainServices({
        store: wrapStore(store, around), now: () => Date.now() + clock.skew, counter: { count: async () => ({ current: 1, ttl: 1 }) }, accounts, onError: () => {}
      })
      t.teardown(() => services.close().catch(() => {}))
      return services
    }
  }
}

/** The events of mails, the earliest first. */
async function listEvents ({ events }: Services): Promise<string[]> {
  await events.flush()
  const found = (await Array.fromAsync(events.list({ sort: 'time:asc' }))).flat().filter(({ type }) => type.startsWith('mail.') && type !== 'mail.retried')
  return found.map(({ type, mail, reason, failure, user_id }) => [type, mail, reason, failure, user_id === undefined ? 'nobody' : 'user'].filter(Boolean).join(' '))
}

async function checkRetries (t: Test, store: Store): Promise<void> {
  const { open, answers, clock, sent } = openScene(t, store)
  const services = await open()
  const { accounts, users } = services
  const { user_id } = await users.create({ data: { account: ANN, password: 'first' } })
  const SENT = 'mail.sent recovery user'
  const failed = (code: string) => `mail.failed recovery mail_failed ${code} user`
  const expected: string[] = []
  async function check (what: string): Promise<void> {
    await settleMails(services)
    t.strictSame(await listEvents(services), expected, what)
  }

  answers.push(busy(), busy())
  await accounts.recoverUser(user_id, ADMIN)
  await check('an attempt that is made again is no end')
  for (const delay of [2 * 60_000, 6 * 60_000]) {
    clock.skew += delay
    await settleMails(services)
  }
  expected.push(SENT)
  await check('taken at the third attempt')

  answers.push(refused())
  await accounts.recoverUser(user_id, ADMIN)
  expected.push(failed('550'))
  await check('refused for good')
  const [record] = (await Array.fromAsync(store.collection<DeliveryRecord>('deliveries').stream())).flat().filter(({ state }) => state === 'failed')
  answers.push(refused())
  await accounts.retryMail(record!.id)
  expected.push(failed('550'))
  await check('an operator has it tried again, and it fails again')
  await accounts.retryMail(record!.id)
  expected.push(SENT)
  await check('and then it is taken')

  answers.push(...Array.from({ length: 6 }, busy))
  await accounts.recoverUser(user_id, ADMIN)
  for (let attempt = 0; attempt < 6; attempt++) {
    await settleMails(services)
    clock.skew += 7 * HOUR
  }
  answers.length = 0
  expected.push(failed('EXPIRED'))
  await check('given up at the end of its link')

  await accounts.signUp('new@example.com', { ip: '192.0.2.1' })
  await accounts.forgotPassword('nobody@example.com', { ip: '192.0.2.1' })
  await check('a mail to who has no account is about nobody')
  await accounts.forgotPassword(ANN, { ip: '192.0.2.1' })
  expected.push('mail.sent forgot user')
  await check('one that somebody has asked for without a sign-in is about the user')
  t.equal(sent.length, 4)
}

/** Kills a process at each write of its attempt at a mail, and lets another one go on. */
async function checkKills (t: Test, store: Store, answer: Answers[number], expected: string): Promise<void> {
  const { open, answers, clock, sent } = openScene(t, store)
  const maker = await open()
  for (let write = 0, isKilled = true; isKilled; write++) {
    const { user_id } = await maker.users.create({ data: { account: `${write}-${ANN}`, password: 'first' } })
    await settleMails(maker)
    const before = await listEvents(maker)
    sent.length = 0
    answers.splice(0, Infinity, answer, answer)
    const [killed, hanging] = [Promise.withResolvers<true>(), [] as (() => void)[]]
    let [writes, isBuried] = [0, false]
    const mortal = await open(({ method }, run) => {
      if (WRITES.includes(method)) writes++
      if (isBuried) return Promise.reject(new Error('the process was killed'))
      if (writes <= write || isListing(method)) return run()
      killed.resolve(true)
      return new Promise((_resolve, reject) => { hanging.push(() => reject(new Error('the process was killed'))) })
    })
    const end = async (): Promise<false> => {
      await mortal.accounts.recoverUser(user_id, ADMIN)
      await settleMails(mortal)
      return false
    }
    isKilled = await Promise.race([killed.promise, end().catch(() => killed.promise)])
    const isAsked = isKilled ? (await Array.fromAsync(store.collection<DeliveryRecord>('deliveries').stream())).flat().some(({ user_id: of }) => of === user_id) : true
    // The leases of the killed process end.
    clock.skew += HOUR / 2
    await settleMails(maker)
    await settleMails(maker)
    const events = (await listEvents(maker)).slice(before.length)
    const isGone = !isAsked && events.length === 0 && sent.length === 0
    if (!isGone) t.strictSame(events, [expected], `killed at write ${write}`)
    t.ok(sent.length <= 2)
    isBuried = true
    hanging.forEach((end) => end())
    await mortal.close().catch(() => {})
    if (write > 30) t.fail('it ends')
  }
}

t.test('each end of a mail is one event', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, checkRetries)
})

t.test('a kill at any write loses no event of a mail, and doubles none', async (t) => {
  for (const [answer, expected] of [['taken', 'mail.sent recovery user'], [refused(), 'mail.failed recovery mail_failed 550 user']] as const) {
    const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
    t.teardown(() => store.close())
    await t.test(expected, async (t) => await checkKills(t, store, answer, expected))
  }
})
