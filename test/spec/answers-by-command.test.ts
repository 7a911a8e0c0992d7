/**
 * "I cannot sign in", on the command line: one command names the cause, the command that it prints does away with it, and then they sign in over
 * HTTP, or get the email.
 * @module
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { OWN } from '../../cli/answers.ts'
import { CALL } from '../../cli/welcome.ts'
import { REMEDIES } from '../../lib/answers/remedies.ts'
import { IdentityError } from '../../lib/errors.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { FoundAccount } from '../../schemas/answers.ts'
import type { Reason } from '../../schemas/reason.ts'
import { startIdentity } from '../../testing/index.ts'
import { TEST_CLIENT, createTestUpstream } from '../../testing/upstream.ts'
import { type Ran, createCli } from '../helpers/cli.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import { startSmtp } from '../helpers/smtp.ts'
import { waitUntil } from '../helpers/wait.ts'
import { type App, type Harness, askCode, atLocalhost, startHarness } from '../oidc/harness.ts'
import { Browser, type Page } from '../oidc/browser.ts'
import { enrolInSignIn } from '../pages/factors.ts'
import { post } from '../pages/visits.ts'
import { through } from '../upstreams/through.ts'

t.setTimeout(600_000)

const KEY = Buffer.alloc(32, 9).toString('base64')
const MINUTE = 60_000
const LONGEST_PAUSE = 15 * MINUTE
const OPERATOR = { user_id: 'operator', isAdmin: true }
const PASSWORD = 'correct horse'
const OTHER = 'another horse entirely'
const START = '/api/v1/auth/upstream/test'

/** The service, the command line on its database, and the mail server of both. */
interface Scene extends Harness {
  run: (line: string | string[]) => Promise<Ran>
  /** The link of the next mail to an address. */
  linkOf: (address: string) => Promise<string>
  /** What the mail server answers to mails for an address. */
  replies: Map<string, number>
  /** How often a mail for an address was tried. */
  attempts: Map<string, number>
}

async function openScene (t: Test, database: string | undefined): Promise<Scene> {
  const directory = t.testdir()
  const given = { database: database ?? `sqlite:${join(directory, 'identity.db')}`, secretKey: KEY }
  const replies = new Map<string, number>()
  const taken = new Set<string>()
  const smtp = await startSmtp(t, { reply: (to) => replies.get(to) ?? 0 })
  const mail = { url: `smtp://127.0.0.1:${smtp.port}`, from: 'id@example.com' }
  const { oidc: { issuer } } = await atLocalhost()
  const harness = await startHarness(t, { ...given, mail, rateLimit: 100, factors: { roles: ['ops'] }, oidc: { issuer, signInLimit: 10 } })
  const run = createCli(directory, {
    DATABASE_URL: given.database,
    IDENTITY_SECRET_KEY: KEY,
    IDENTITY_FACTORS: 'roles:ops',
    IDENTITY_ISSUER: issuer,
    IDENTITY_MAIL_URL: mail.url,
    IDENTITY_MAIL_FROM: mail.from
  })
  return {
    ...harness,
    run,
    replies,
    attempts: smtp.attempts,
    async linkOf (address) {
      // The service and the command may both send it.
      const link = await waitUntil(`a link to ${address}`, () => smtp.received.filter(({ to }) => to === address)
        .flatMap(({ text }) => /https?:\S+token=\S+/.exec(text) ?? []).find((one) => !taken.has(one)))
      taken.add(link)
      return link
    }
  }
}

/** Whether a page is one of somebody who has signed in. */
const isIn = ({ title }: Page): boolean => !title.endsWith('Sign in')

/** Signs in over HTTP with the password, as a stranger's browser. */
const enter = async ({ browser }: Harness, account: string, password: string): Promise<Page> => await (await browser().open('/account/sign-in')).submit({ account, password })

const enters = async (scene: Harness, account: string, password = PASSWORD): Promise<boolean> => isIn(await enter(scene, account, password))

/** Takes the link of a mail for a new password, and signs in with it. */
async function entersByMail (scene: Scene, account: string, address = account): Promise<boolean> {
  const page = await scene.browser().open(await scene.linkOf(address))
  await page.submit({ password: OTHER })
  return await enters(scene, account, OTHER)
}

async function fail ({ kit }: Scene, times: number, attempt: () => Promise<unknown>): Promise<void> {
  for (let count = 0; count < times; count++) {
    await attempt().catch((error: unknown) => { if (!(error instanceof IdentityError)) throw error })
    if (count < times - 1 && count >= 19) kit.clock.advance(LONGEST_PAUSE)
  }
}

const create = async ({ kit }: Scene, account: string): Promise<string> => (await kit.app.identity.users.create({ data: { account, password: PASSWORD } })).user_id

/** Makes a user who has no password. */
async function createBare (scene: Scene, account: string, email: string): Promise<void> {
  const id = await create(scene, account)
  await scene.kit.app.identity.users.patch(id, { data: { email } }, OPERATOR)
  await scene.kit.app.identity.store.collection<UserRecord>('users').update(id, { unset: ['password'], increment: { revision: 1 } })
}

/** What `user why` says to do about a reason, and that it has the reason. */
async function askWhy ({ run, kit }: Scene, t: Test, account: string, reason: Reason, flags: string[] = []): Promise<string> {
  await kit.app.identity.events.flush()
  const { code, stdout, stderr } = await run(['user', 'why', account, ...flags])
  t.equal(code, 0, stderr)
  const [, remedy] = new RegExp(`^reason +${reason}\\n(?:[^\\n]+\\n)*?what to do +([^\\n]+)`, 'm').exec(stdout) ?? []
  if (remedy === undefined) throw new Error(`${reason} is not named: ${stdout}`)
  return remedy
}

/** Runs the command that `user why` has printed. */
async function runRemedy ({ run }: Scene, t: Test, remedy: string): Promise<Ran> {
  t.ok(remedy.startsWith(`${CALL} `), remedy)
  const ran = await run(remedy.slice(CALL.length + 1))
  t.equal(ran.code, 0, `${remedy}: ${ran.stderr}`)
  return ran
}

interface Cause {
  reason: Reason
  account: string
  /** Makes the cause. */
  make: (scene: Scene, account: string) => Promise<unknown>
  /** What somebody else mends, once the cause is named. */
  mend?: (scene: Scene, account: string) => void
  /** Flags of `user why`. */
  flags?: () => string[]
  /** Whether they are in, once the command that was printed has run. By default with their password. */
  enters?: (scene: Scene, t: Test, ran: Ran) => Promise<boolean>
  /** It is no refusal, so that they are not asked to sign in before. */
  isOpen?: true
}

let app: App | undefined

const CAUSES: Record<string, Cause> = {
  'a mistyped name': {
    reason: 'no_account',
    account: 'ann-lee@exmaple.com',
    make: async (scene) => await create(scene, 'ann-lee@example.com'),
    async enters (scene, _t, { stdout }) {
      return await enters(scene, /^account +(\S+)/m.exec(stdout)?.[1] ?? '')
    }
  },
  'a name that nobody has': {
    reason: 'no_account',
    account: 'newcomer@example.com',
    make: async () => {},
    enters: async (scene) => await entersByMail(scene, 'newcomer@example.com')
  },
  'a wrong password': {
    reason: 'wrong_password',
    account: 'forgetful@example.com',
    make: async (scene, account) => {
      await create(scene, account)
      await enter(scene, account, 'wrong')
    },
    isOpen: true,
    enters: async (scene) => await entersByMail(scene, 'forgetful@example.com')
  },
  'disabled by an administrator': {
    reason: 'disabled',
    account: 'disabled@example.com',
    make: async (scene, account) => await scene.kit.app.identity.users.patch(await create(scene, account), { disable: true }, OPERATOR)
  },
  expired: {
    reason: 'expired',
    account: 'expired@example.com',
    async make ({ run }, account) {
      // As a test account of a day that is over.
      await run(['user', 'create', account, '--expires', '2020-01-01T00:00:00Z'])
    },
    enters: async (scene) => {
      await scene.run('user recover expired@example.com')
      return await entersByMail(scene, 'expired@example.com')
    }
  },
  'an invitation is open': {
    reason: 'invitation_open',
    account: 'invited@example.com',
    async make ({ kit, linkOf }, account) {
      await kit.app.identity.accounts.inviteUser({ account }, OPERATOR)
      await linkOf(account)
    },
    enters: async (scene) => await entersByMail(scene, 'invited@example.com')
  },
  'a factor is demanded and missing': {
    reason: 'factor_missing',
    account: 'demanded@example.com',
    async make (scene, account) {
      const { users, heldFactors } = scene.kit.app.identity
      const id = await create(scene, account)
      await users.patch(id, { data: { roles: { ops: true } } }, OPERATOR)
      await heldFactors.reset(id, OPERATOR)
      await scene.linkOf(account)
    },
    async enters (scene) {
      const form = await (await scene.browser().open(await scene.linkOf('demanded@example.com'))).submit()
      const why = await post(form, form.response.url, { account: 'demanded@example.com', password: PASSWORD })
      const { page } = await enrolInSignIn(scene.kit.clock, why)
      return (await page.browser.open('/account')).text.includes('demanded@example.com')
    }
  },
  'the address is not proved': {
    reason: 'unproved_address',
    account: 'unproved',
    make: async (scene, account) => await createBare(scene, account, 'unproved@example.com'),
    async enters (scene, t) {
      // What remains is that they have no password.
      await runRemedy(scene, t, await askWhy(scene, t, 'unproved', 'no_method'))
      return await entersByMail(scene, 'unproved', 'unproved@example.com')
    }
  },
  'the address is not proved, and they type it': {
    reason: 'unproved_address',
    account: 'typed@example.com',
    make: async (scene) => await createBare(scene, 'typist', 'typed@example.com'),
    async enters (scene, t) {
      await runRemedy(scene, t, await askWhy(scene, t, 'typed@example.com', 'no_method'))
      return await entersByMail(scene, 'typed@example.com')
    }
  },
  'the mail server has refused an email': {
    reason: 'mail_failed',
    account: 'refused@example.com',
    async make (scene, account) {
      await create(scene, account)
      scene.replies.set(account, 550)
      await scene.run(['user', 'recover', account])
      await waitUntil('a failed mail', async () => /failed/.test((await scene.run(['user', 'mails', account])).stdout))
    },
    mend: ({ replies }, account) => { replies.delete(account) },
    isOpen: true,
    enters: async (scene) => await entersByMail(scene, 'refused@example.com')
  },
  'the mail server has not yet taken an email': {
    reason: 'mail_waiting',
    account: 'busy@example.com',
    async make (scene, account) {
      await create(scene, account)
      scene.replies.set(account, 450)
      await scene.run(['user', 'recover', account])
      await waitUntil('a mail that was tried', () => scene.attempts.has(account))
    },
    mend: ({ replies }, account) => { replies.delete(account) },
    isOpen: true,
    enters: async (scene) => await entersByMail(scene, 'busy@example.com')
  },
  'the app is disabled': {
    reason: 'client_disabled',
    account: 'app-off@example.com',
    async make (scene, account) {
      await create(scene, account)
      app = await scene.register()
      await scene.kit.app.identity.clients.patch(app.client_id, { data: { disabled: true } }, OPERATOR)
    },
    flags: () => ['--client', app?.client_id.slice(-8) ?? ''],
    isOpen: true,
    async enters ({ browser }) {
      const page = await (await browser().open(askCode(app!).url)).submit({ account: 'app-off@example.com', password: PASSWORD })
      return page.left?.searchParams.has('code') === true
    }
  },
  'paused after wrong passwords': {
    reason: 'paused',
    account: 'paused@example.com',
    async make (scene, account) {
      await create(scene, account)
      await fail(scene, 20, async () => await scene.kit.app.identity.users.verify(account, 'wrong'))
    }
  },
  'locked after wrong passwords': {
    reason: 'password_locked',
    account: 'locked@example.com',
    async make (scene, account) {
      await create(scene, account)
      await fail(scene, 101, async () => await scene.kit.app.identity.users.verify(account, 'wrong'))
    }
  }
}

async function testCauses (t: Test, database?: string): Promise<void> {
  const scene = await openScene(t, database)
  for (const [name, cause] of Object.entries(CAUSES)) {
    await t.test(name, async (t) => {
      const { reason, account, make, flags = () => [], isOpen } = cause
      await make(scene, account)
      if (isOpen !== true) t.notOk(await enters(scene, account), 'refused before')
      const remedy = await askWhy(scene, t, account, reason, flags())
      cause.mend?.(scene, account)
      const ran = await runRemedy(scene, t, remedy)
      t.ok(await (cause.enters === undefined ? enters(scene, account) : cause.enters(scene, t, ran)), 'they are in')
      if (cause.reason === 'no_account') return
      // The email about the new password may wait for a moment, as the one before it did.
      await waitUntil('the cause is gone', async () => {
        const { stdout } = await scene.run(['user', 'why', cause.account, ...flags()])
        return !new RegExp(`^reason +${reason}\\n`, 'm').test(stdout)
      })
    })
  }

  await t.test('too many attempts a minute', async (t) => {
    const account = 'limited@example.com'
    await create(scene, account)
    scene.kit.clock.set(Date.now())
    for (let count = 0; count < 11; count++) await enter(scene, account, 'wrong')
    t.notOk(await enters(scene, account), 'refused before')
    t.match(await askWhy(scene, t, account, 'limited'), /^Wait\./)
    scene.kit.clock.advance(MINUTE)
    t.ok(await enters(scene, account))
  })

  await t.test('the authenticator app is locked', async (t) => {
    const account = 'factor@example.com'
    const totp = await scene.kit.totp(await create(scene, account))
    const id = (await scene.kit.app.identity.users.getByAccount(account))?.user_id ?? ''
    await fail(scene, 101, async () => await scene.kit.app.identity.factors.verifyTotp(id, '000000'))
    const type = async () => await (await enter(scene, account, PASSWORD)).submit({ code: await totp.code() })
    t.notMatch((await type()).title, /Profile/, 'refused before')
    await runRemedy(scene, t, await askWhy(scene, t, account, 'factor_locked'))
    scene.kit.clock.advance(MINUTE)
    t.match((await type()).title, /Profile/)
  })
}

t.test('a person who adds the demanded factor as they sign in is told so, and nothing is reset', async (t) => {
  const scene = await openScene(t, undefined)
  const id = await create(scene, 'new-ops@example.com')
  await scene.kit.app.identity.users.patch(id, { data: { roles: { ops: true } } }, OPERATOR)
  t.equal(await askWhy(scene, t, 'new-ops@example.com', 'factor_missing'), 'They add a factor as they sign in.')
  t.strictSame(((await scene.run('user why new-ops@example.com --json')).json() as unknown as FoundAccount).reasons, [{ reason: 'factor_missing' }])
})

t.test('each remedy that is nobody else\'s says what to do', async (t) => {
  for (const opening of Object.values(REMEDIES)) if ('self' in opening) t.match(OWN[opening.self as keyof typeof OWN], /\.$/, opening.self)
})

if (!IS_ELSEWHERE) t.test('the command line names the cause, and what it prints opens it, on sqlite', async (t) => await testCauses(t))

t.test('the command line names the cause, and what it prints opens it, on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  await testCauses(t, reuseMongoDatabase(t, MONGODB_URL!))
})

t.test('the provider is off', async (t) => {
  const directory = t.testdir()
  writeFileSync(join(directory, 'secret'), TEST_CLIENT.clientSecret, { mode: 0o600 })
  const database = `sqlite:${join(directory, 'identity.db')}`
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  const settings = { id: 'test', kind: 'oidc' as const, name: 'Test', issuer: provider.issuer, emails: 'verified' as const }
  const { oidc } = await atLocalhost()
  const start = async (isOn: boolean) => {
    const kit = await startIdentity({ database, secretKey: KEY, oidc, signUp: true, ...(isOn && { upstreams: [{ ...settings, ...TEST_CLIENT, create: true }] }) })
    await kit.listen({ port: Number(new URL(oidc.issuer).port) })
    return kit
  }
  const visit = async () => {
    provider({ sub: 'olga', email: 'olga@corp.example', email_verified: true })
    return await through(new Browser(oidc.issuer), START)
  }
  const before = await start(true)
  t.match((await visit()).text, 'olga@corp.example', 'they have made an account with it')
  await before.close()
  const off = await start(false)
  await t.rejects(visit(), 'refused before')
  await off.close()
  const env = { DATABASE_URL: database, IDENTITY_SECRET_KEY: KEY, IDENTITY_ISSUER: oidc.issuer }
  const run = createCli(directory, env)
  const why = (await run('user why olga@corp.example')).stdout
  t.match(why, /^reason +upstream_off$/m)
  t.match(why, new RegExp(`^what to do +The configuration: ${CALL} config check$`, 'm'))
  t.match((await run('config check')).stdout, /providers +off[^]*Name a file in IDENTITY_UPSTREAMS_FILE/)
  const file = join(directory, 'upstreams.json')
  writeFileSync(file, JSON.stringify([{ ...settings, clientId: TEST_CLIENT.clientId, clientSecretFile: join(directory, 'secret') }]))
  t.match((await createCli(directory, { ...env, IDENTITY_UPSTREAMS_FILE: file })('user why olga@corp.example')).stdout, /^allowed +yes$/m)
  const on = await start(true)
  t.teardown(on.close)
  t.match((await visit()).text, 'olga@corp.example')
})
