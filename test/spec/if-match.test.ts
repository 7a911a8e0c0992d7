import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { type Api, createClient, createUser, signIn } from '../helpers/people.ts'

// A patch with `If-Match` changes nothing that somebody else has changed since it was read.

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { rateLimit: false })
  const admin = await signIn(kit, { roles: ['admin'] })
  const patch = async (api: Api, url: string, payload: object, tag: string) => {
    const { status, body } = await api.send<{ code?: string, message?: string } | null>({ method: 'PATCH', url, payload, headers: { 'if-match': tag } })
    return { status, message: body?.message }
  }
  const read = async (api: Api, url: string) => {
    const { headers, body } = await api.get<{ data: Record<string, unknown> }>(url)
    return { tag: String(headers.etag), data: body.data }
  }

  t.test('a user: only the fields that the patch sends count', async (t) => {
    const user_id = await createUser(admin, { name: 'Ann', info: { a: 1 } })
    const url = `/user/${user_id}`
    const { tag } = await read(admin, url)
    t.match(tag, /^"[\w:.-]+"$/)
    t.match(await patch(admin, url, { data: { name: 'Anna' } }, tag), { status: 204 })
    t.match(await patch(admin, url, { data: { info: { a: 2 } } }, tag), { status: 204 }, 'the name has changed, and is not sent')
    t.match(await patch(admin, url, { data: { name: 'Annika' } }, tag), { status: 412, message: 'If-Match: changed since they were read: name' })
    t.match(await patch(admin, url, { data: { name: 'Annika', info: {}, roles: { editor: true } } }, tag), { status: 412, message: 'If-Match: changed since they were read: name, info' })
    t.match((await read(admin, url)).data, { name: 'Anna', info: { a: 2 }, roles: {} }, 'nothing was written')
    const { tag: fresh } = await read(admin, url)
    t.match(await patch(admin, url, { data: { name: 'Annika', info: {}, roles: { editor: true } } }, fresh), { status: 204 })
    t.match(await patch(admin, url, { data: { roles: {} } }, `"other", ${(await read(admin, url)).tag}`), { status: 204 }, 'one tag of several')
    t.match(await patch(admin, url, { data: { roles: { a: true } } }, '*'), { status: 204 })
    t.match(await patch(admin, url, { disable: true }, tag), { status: 204 }, 'an act that is no field')
    t.match(await patch(admin, url, { disable: false }, tag), { status: 204 })
    for (const wrong of ['"x"', 'x', '""', `W/${fresh}`, '"name"', '"a:b"', '']) {
      t.match(await patch(admin, url, { data: { name: 'Somebody' } }, wrong), { status: 412 }, `the tag ${wrong}`)
    }
  })

  t.test('a sign-in, and a change of somebody else, are no conflict', async (t) => {
    const [one, other] = [await createUser(admin), await createUser(admin)]
    const { tag } = await read(admin, `/user/${one}`)
    await kit.mint({ user: one })
    await admin.patch(`/user/${other}`, { data: { name: 'Bob' } })
    t.match(await patch(admin, `/user/${one}`, { data: { name: 'Ann' } }, tag), { status: 204 })
  })

  t.test('a client', async (t) => {
    const ann = await signIn(kit)
    const url = `/client/${await createClient(ann, { name: 'Shop', scopes: ['read'] })}`
    const { tag } = await read(ann, url)
    t.equal((await read(admin, url)).tag, tag, 'whoever reads it')
    t.match(await patch(admin, url, { data: { scopes: ['read', 'write'], roles: {} } }, tag), { status: 204 })
    t.match(await patch(ann, url, { data: { name: 'Web shop' } }, tag), { status: 204 })
    t.match(await patch(ann, url, { data: { name: 'Another', scopes: [], image: null } }, tag), { status: 412, message: 'If-Match: changed since they were read: name, scopes' })
    t.match((await read(ann, url)).data, { name: 'Web shop', scopes: ['read', 'write'] })
    const bob = await signIn(kit)
    t.match(await patch(bob, url, { data: { name: 'Mine' } }, tag), { status: 404 }, 'it says nothing of what somebody may not see')
    t.notMatch(JSON.stringify(await read(ann, url)), /clientSecret/)
  })

  t.test('of two who change the same field at once, one is refused', async (t) => {
    for (let round = 0; round < 5; round++) {
      const url = `/user/${await createUser(admin, { name: 'Ann' })}`
      const { tag } = await read(admin, url)
      const replies = await Promise.all(['one', 'two', 'three'].map(async (name) => ({ name, ...await patch(admin, url, { data: { name } }, tag) })))
      const done = replies.filter(({ status }) => status === 204)
      t.equal(done.length, 1, replies.map(({ status }) => status).join())
      t.equal((await read(admin, url)).data['name'], done[0]?.name)
    }
  })
})
