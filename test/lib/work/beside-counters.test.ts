import t from 'tap'
import { createCounter } from '../../../lib/throttling/counter.ts'
import { type Build, forEachStore } from '../../helpers/build.ts'
import { callAs, createUser, signIn } from '../../helpers/people.ts'
import { PROMPT, waitUntil, within } from '../../helpers/wait.ts'

const FLOOD = '198.51.100.7'
const STRANGER = '203.0.113.9'
const PASSWORD = 'the first password'

/** A service with small limits, two users, and requests from any address. */
async function start (t: Parameters<Build>[0], build: Build, options: Parameters<Build>[1] = {}) {
  const kit = await build(t, { rateLimit: 5, writeLimit: 10, signUp: true, ...options })
  const admin = await signIn(kit, { roles: ['admin'] })
  const [ann, bob] = await Promise.all(['ann@example.com', 'bob@example.com'].map(async (account) => {
    const user_id = await createUser(admin, { account, password: PASSWORD })
    return { ...await signIn(kit, { user: user_id }), account, user_id }
  }))
  async function enter (account: string, password: string, remoteAddress: string): Promise<number> {
    const { body, headers } = await kit.inject({ url: '/account/sign-in', remoteAddress })
    const cookie = String(headers['set-cookie']).split(';')[0]
    const xsrf = /name="xsrf" value="([^"]*)"/.exec(body)?.[1] ?? ''
    const { statusCode } = await kit.inject({
      method: 'POST',
      url: '/account/sign-in',
      remoteAddress,
      payload: new URLSearchParams({ xsrf, account, password }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie }
    })
    return statusCode
  }
  const ask = async (account: string, remoteAddress: string) =>
    await callAs(kit).send({ method: 'POST', url: '/auth/forgot', payload: { data: { account } }, remoteAddress })
  const use = async (token: string, remoteAddress: string) =>
    await callAs(kit).send({ method: 'POST', url: '/auth/reset', payload: { data: { token, password: 'the second password' } }, remoteAddress })
  return { kit, admin, ann: ann!, bob: bob!, enter, ask, use }
}

type Started = Awaited<ReturnType<typeof start>>

/** What others do meanwhile, from another address, and as an administrator. */
async function goOn (t: Parameters<Build>[0], { kit, admin, ann, bob, enter, ask, use }: Started): Promise<void> {
  const acts: [name: string, act: () => Promise<unknown>, expected: unknown][] = [
    ['a sign-in of the same user', async () => await enter(ann.account, PASSWORD, STRANGER), 303],
    ['a sign-in of another user', async () => await enter(bob.account, PASSWORD, STRANGER), 303],
    ['a request of a link', async () => (await ask(bob.account, STRANGER)).status, 204],
    ['a change', async () => (await bob.patch('/user', { data: { name: 'Bob' } })).status, 204],
    ['a token look-up', async () => (await ann.get('/auth/tokeninfo')).status, 200],
    ['a recovery by an administrator', async () => (await admin.post(`/user/${ann.user_id}/recovery`)).status, 200]
  ]
  for (const [name, act, expected] of acts) {
    t.equal(await within(name, act(), PROMPT), expected, name)
  }
  for (const { account } of [ann, bob]) {
    kit.clock.advance(1)
    const { token } = await kit.mails.next({ to: account })
    t.equal((await use(token!, STRANGER)).status, 204, 'the link works')
  }
}

t.test('one address that has used up every limit it can, also at the password and the mailbox of a user, limits nobody else', async (t) => {
  await forEachStore(t, async (t, build) => {
    const started = await start(t, build)
    const { kit, ann, enter, ask, use } = started
    for (const [name, act, refused] of [
      ['sign-ins', async () => await enter(ann.account, 'a guess', FLOOD), 429],
      ['links', async () => (await use('none', FLOOD)).status, 429],
      ['writes', async () => (await ann.patch('/user', { data: { name: 'Ann' } })).status, 429]
    ] as const) {
      let status = 0
      for (let count = 0; count < 200 && status !== refused; count++) status = await act()
      t.equal(status, refused, `${name} are refused`)
    }
    for (let count = 0; count < 20; count++) await ask(ann.account, FLOOD)
    await kit.mails.all()
    await goOn(t, started)
  })
})

t.test('a counter that hangs for one address keeps nobody else waiting', async (t) => {
  await forEachStore(t, async (t, build) => {
    const counts = createCounter()
    const goes = Promise.withResolvers<void>()
    let hanging = 0
    const started = await start(t, build, {
      counter: {
        async count (kind, key, window) {
          if (key.includes(FLOOD)) {
            hanging++
            await goes.promise
          }
          return await counts.count(kind, key, window)
        }
      }
    })
    const flood = Array.from({ length: 100 }, async (_, index) => await started.ask(`nobody-${index}@example.com`, FLOOD))
    await waitUntil('every request of the flood hangs', () => hanging === flood.length)
    await goOn(t, started)
    goes.resolve()
    await Promise.all(flood)
  })
})
