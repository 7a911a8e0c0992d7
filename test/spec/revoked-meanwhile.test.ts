import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { build } from '../helpers/build.ts'
import { signIn } from '../helpers/people.ts'
import { createPasswords } from '../../lib/users/passwords.ts'

// A caller decides how long their request takes. A request whose token is revoked before its end must change nothing.

/** Sends the head of a request and resolves when the service has read it; `finish` sends the body and reads the status. */
async function hold (t: Test, url: string, method: string, path: string, authorization: string, data: object) {
  const { hostname, port } = new URL(url)
  const body = JSON.stringify(data)
  const socket = connect(Number(port), hostname)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(`${method} /api/v1${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n`)
  // The service sends 100 Continue once it has read the head and the guard has admitted the caller, before the body.
  const [first] = await once(socket, 'data') as [Buffer]
  t.match(first.toString(), /^HTTP\/1\.1 100 /)
  return async () => {
    socket.write(body)
    const parts: Buffer[] = []
    for await (const part of socket) parts.push(part as Buffer)
    return Number(/^HTTP\/1\.1 (\d+)/.exec(Buffer.concat(parts).toString())?.[1])
  }
}

t.test('a body that comes after the revocation changes nothing', async (t) => {
  const kit = await build(t)
  const { url } = await kit.listen()
  const admin = await signIn(kit, { roles: ['admin'] })
  const boss = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)

  const register = await hold(t, url, 'POST', '/client', ann.headers.authorization, { data: { redirectUris: [], scopes: [], name: 'planted' } })
  const own = await hold(t, url, 'PATCH', '/user', ann.headers.authorization, { data: { name: 'written by a thief' } })
  t.match(await admin.patch(`/user/${ann.user_id}`, { data: { password: 'new' } }), { status: 204 })
  t.equal(await own(), 401)
  t.equal(await register(), 401)
  t.match(await admin.get(`/client/count?user=${ann.user_id}`), { body: { data: { count: 0 } } })
  t.match(await admin.get(`/user/${ann.user_id}`), { body: { data: { name: '' } } })

  const grant = await hold(t, url, 'PATCH', `/user/${ann.user_id}`, boss.headers.authorization, { data: { roles: { admin: true } } })
  t.match(await admin.patch(`/user/${boss.user_id}`, { disable: true }), { status: 204 })
  t.equal(await grant(), 401)
  t.match(await admin.get(`/user/${ann.user_id}`), { body: { data: { roles: {} } } })
})

t.test('a password that is being hashed at the revocation is not written', async (t) => {
  // A hash takes longer than a revocation.
  const kit = await build(t, { bcryptCost: 10 })
  const admin = await signIn(kit, { roles: ['admin'] })
  const boss = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)
  const { users } = kit.app.identity
  const verify = async (password: string) => await users.verify(ann.account, password) !== null

  for (const [revoke, revived] of [
    [async () => {
      kit.app.identity.tokens.deleteOfUser(ann.user_id)
      await kit.app.identity.tokens.settle()
    }, 'the token removed'],
    [() => admin.patch(`/user/${ann.user_id}`, { disable: true }), 'the user disabled']
  ] as const) {
    const again = await kit.mint({ user: ann.account })
    const change = kit.inject({ method: 'PATCH', url: '/api/v1/user', headers: again.headers, payload: { data: { password: 'thief' } } })
    await revoke()
    t.equal((await change).statusCode, 401, revived)
  }
  await admin.patch(`/user/${ann.user_id}`, { disable: false })
  t.equal(await verify('thief'), false)

  const change = boss.patch(`/user/${ann.user_id}`, { data: { password: 'thief' } })
  const create = boss.post('/user', { data: { account: 'accomplice', password: 'thief' } })
  await admin.patch(`/user/${boss.user_id}`, { data: { roles: {} } })
  t.match(await Promise.all([change, create]), [{ status: 403 }, { status: 403 }])
  t.equal(await verify('thief'), false)
  t.equal(await users.getByAccount('accomplice'), null)
})

t.test('a full queue refuses an unknown account only while it is full', async (t) => {
  const passwords = createPasswords({ cost: 4, queue: 1 })
  t.teardown(() => passwords.close())
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => passwords.hash('p')).concat(passwords.verify('p', undefined).then(String)))
  t.match(results.at(-1), { status: 'rejected', reason: { code: 'ErrBusy' } })
  t.equal(await passwords.verify('p', undefined), false)
})
