import { once } from 'node:events'
import { type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { type LogoRecord, createLogos } from '../../../lib/clients/logos.ts'
import { type OutboundRead, createOutbound } from '../../../lib/outbound/fetcher.ts'
import { type ClientRecord, createClientRecord } from '../../../lib/records/client.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { storeError } from '../../../lib/errors.ts'
import { HOUR, MINUTE } from '../../helpers/lives.ts'
import { forEachEngine } from '../../helpers/stores.ts'
import { waitUntil } from '../../helpers/wait.ts'

const HOST = 'https://shop.example'
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
const toUrl = (type: string, content: Buffer) => `data:${type};base64,${content.toString('base64')}`

/** The paths that were asked for, and the answers to them. */
const asked: string[] = []
const answers = new Map<string, (response: ServerResponse) => void>()
const server = createServer(({ url = '', headers }, response) => {
  asked.push(url)
  if (headers.cookie !== undefined || headers.referer !== undefined) response.writeHead(400)
  const answer = answers.get(url)
  if (answer === undefined) response.writeHead(404).end()
  else answer(response)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const outbound = createOutbound({ allow: ['127.0.0.1'] })
t.teardown(async () => {
  await outbound.close()
  server.closeAllConnections()
  server.close()
})

const send = (content: Buffer | string, type = 'image/png') => (response: ServerResponse) => { response.writeHead(200, { 'content-type': type }).end(content) }

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  let time = Date.UTC(2026, 10, 23)
  let count = 0
  const warnings: string[] = []
  const errors: unknown[] = []
  const logos = store.collection<LogoRecord>('client_logos')
  const clients = store.collection<ClientRecord>('clients')
  /** A process. */
  const start = (parts: Partial<Parameters<typeof createLogos>[0]> = {}) => createLogos({
    store,
    now: () => time,
    report: () => (error) => { errors.push(error) },
    read: async (request: OutboundRead) => await outbound.read({ ...request, url: request.url.replace(HOST, origin) }),
    onWarning: (message) => { warnings.push(message) },
    ...parts
  })
  const [one, two] = [start(), start()]
  t.beforeEach(() => {
    asked.length = 0
    warnings.length = 0
    answers.set('/logo.png', send(PNG))
  })
  t.teardown(async () => { await Promise.all([one.close(), two.close()]) })

  async function create (image = `${HOST}/logo.png`, fields: Partial<ClientRecord> = { first_party: true }): Promise<string> {
    const id = `c${store.engine}${++count}`
    await clients.insert(createClientRecord(time, { id, name: id, redirectUris: [], scopes: [], userId: 'u1', image, revision: 0, ...fields }))
    return id
  }
  const found = async (id: string, image = `${HOST}/logo.png`, by = one) => await waitUntil('the logo', async () => await by.find(id, image))
  const failed = async (id: string) => await waitUntil('a warning', () => warnings.find((text) => text.includes(id)))

  await t.test('is fetched once, over many pages and two processes, and the first pages go without it', async (t) => {
    const id = await create()
    const pages = await Promise.all(Array.from({ length: 20 }, async (_, page) => await (page % 2 === 0 ? one : two).find(id, `${HOST}/logo.png`)))
    t.strictSame(new Set(pages), new Set([undefined]))
    t.equal(await found(id), toUrl('image/png', PNG))
    t.equal(await found(id, undefined, two), toUrl('image/png', PNG))
    time += 30 * 24 * HOUR
    t.equal(await one.find(id, `${HOST}/logo.png`), toUrl('image/png', PNG))
    t.strictSame(asked, ['/logo.png'])
    t.match(await logos.get(id), { url: `${HOST}/logo.png`, type: 'image/png', content: PNG.toString('base64') })
  })

  await t.test('the content decides the type, and an SVG is taken as it is', async (t) => {
    answers.set('/logo.svg', send(SVG, 'text/html'))
    t.equal(await found(await create(`${HOST}/logo.svg`), `${HOST}/logo.svg`), toUrl('image/svg+xml', SVG))
  })

  await t.test('what cannot be shown is not stored, and is tried again in an hour', async (t) => {
    const cases: Record<string, [answer: (response: ServerResponse) => void, reason: RegExp]> = {
      '/large': [send(Buffer.concat([PNG, Buffer.alloc(64 * 1024)])), /larger than 65536 bytes/],
      '/page': [send('<!DOCTYPE html><title>Logo</title>', 'image/png'), /is not a PNG/],
      '/empty': [send(''), /is not a PNG/],
      '/moved': [(response) => { response.writeHead(302, { location: `${origin}/logo.png` }).end() }, /answered 302/],
      '/private': [(response) => { response.writeHead(302, { location: 'http://169.254.169.254/latest/' }).end() }, /answered 302/],
      '/fault': [(response) => { response.writeHead(500).end(PNG) }, /answered 500/],
      '/cut': [(response) => { response.writeHead(200).write(PNG.subarray(0, 10), () => response.destroy()) }, /ECONNRESET|EFAILED/]
    }
    for (const [path, [answer, reason]] of Object.entries(cases)) {
      answers.set(path, answer)
      const image = HOST + path
      const id = await create(image)
      t.equal(await one.find(id, image), undefined)
      t.match(await failed(id), reason, path)
      t.notMatch(warnings.join(), 'shop.example', 'no text of the host or the owner')
      for (const by of [one, two]) t.equal(await by.find(id, image), undefined)
      time += HOUR - MINUTE
      await one.find(id, image)
      t.strictSame(asked, [path], `${path}: once`)
      t.match(await logos.get(id), { content: undefined, type: undefined })
      answers.set(path, send(PNG))
      time += 2 * MINUTE
      t.equal(await found(id, image), toUrl('image/png', PNG), `${path}: an hour later`)
      asked.length = 0
      warnings.length = 0
    }
  })

  await t.test('a host keeps no process busy with what it sends', async (t) => {
    const starts = { comments: '<!---->', 'comments and spaces': '<!-- --> ', 'open comments': '<!--', declarations: '<?xml ' }
    for (const [name, start] of Object.entries(starts)) {
      const image = `${HOST}/${name.replaceAll(' ', '-')}`
      answers.set(new URL(image).pathname, send(start.repeat(4096)))
      const id = await create(image)
      const before = performance.now()
      await one.find(id, image)
      t.match(await failed(id), /is not a PNG/, name)
      t.ok(performance.now() - before < 2000, name)
    }
    const image = `${HOST}/comments.svg`
    answers.set('/comments.svg', send(`<?xml version="1.0"?>\n<!-- a -- b -->\n<!----> <!DOCTYPE svg>${SVG}`))
    t.match(await found(await create(image), image), /^data:image\/svg\+xml/)
  })

  await t.test('only https, and only public addresses', async (t) => {
    const calls: string[] = []
    const real = createOutbound({ allow: [], resolve: async () => [{ address: '10.1.2.3', family: 4 }] })
    t.teardown(real.close)
    const logosOf = start({ read: async (request) => { calls.push(request.url); return await real.read(request) } })
    for (const image of ['https://10.0.0.1/a', 'https://127.0.0.1/a', 'https://[fd00::1]/a', 'https://169.254.169.254/latest', 'https://inside.example/a']) {
      const id = await create(image)
      await logosOf.find(id, image)
      t.match(await failed(id), /EREFUSED/, image)
    }
    const before = calls.length
    for (const image of ['http://shop.example/logo.png', 'data:image/png;base64,AAAA', 'nonsense']) {
      const id = await create(image)
      t.equal(await logosOf.find(id, image), undefined)
      t.equal(await logos.get(id), null, image)
    }
    t.equal(calls.length, before)
    await logosOf.close()
  })

  await t.test('another URL is fetched at once, and the image of the former one is not shown', async (t) => {
    const id = await create()
    await found(id)
    answers.set('/new.svg', send(SVG))
    await clients.update(id, { set: { image: `${HOST}/new.svg` } })
    t.equal(await two.find(id, `${HOST}/new.svg`), undefined)
    t.equal(await found(id, `${HOST}/new.svg`), toUrl('image/svg+xml', SVG))
    t.strictSame(asked, ['/logo.png', '/new.svg'])
  })

  await t.test('a client that nobody vouches for, and one without an image, cost nothing', async (t) => {
    const reads: string[] = []
    const counting = start({ store: { ...store, collection: (name: string) => ({ get: async (id: string) => { reads.push(`${name} ${id}`); return null } }) } as never })
    t.equal(await counting.find('c', undefined), undefined)
    t.strictSame(reads, [])
    const id = await create(undefined, {})
    await one.find(id, `${HOST}/logo.png`)
    await waitUntil('the claim', async () => await logos.get(id))
    await one.find(await create(), `${HOST}/logo.png`)
    await waitUntil('another one', () => asked.length > 0)
    t.strictSame(asked, ['/logo.png'], 'a client that is no longer vouched for by then is not fetched')
  })

  await t.test('a slow host delays no page; a client that is deleted meanwhile leaves nothing', async (t) => {
    const held: ServerResponse[] = []
    answers.set('/slow', (response) => { held.push(response) })
    const image = `${HOST}/slow`
    const id = await create(image)
    t.equal(await one.find(id, image), undefined)
    await waitUntil('the request', () => held.length > 0)
    t.equal(await one.find(id, image), undefined, 'pages meanwhile')
    t.equal(await two.find(id, image), undefined)
    await clients.delete(id)
    await logos.delete(id)
    send(PNG)(held[0]!)
    const other = await create()
    await found(other)
    t.equal(await logos.get(id), null)
    await one.find(id, image)
    await waitUntil('the end of a look-up for a client that is gone', async () => await logos.get(id) === null)
    t.equal(held.length, 1)
  })

  await t.test('two at a time, and each client once', async (t) => {
    const held: ServerResponse[] = []
    answers.set('/slow', (response) => { held.push(response) })
    const image = `${HOST}/slow`
    const ids = await Promise.all(Array.from({ length: 5 }, async () => await create(image)))
    for (let turn = 0; turn < 3; turn++) for (const id of ids) t.equal(await one.find(id, image), undefined)
    for (let done = 0; done < ids.length; done++) {
      const response = await waitUntil('a request', () => held[done])
      t.ok(held.length <= done + 2, `${held.length} requests after ${done} answers`)
      send(PNG)(response)
    }
    for (const id of ids) t.equal(await found(id, image), toUrl('image/png', PNG))
    t.equal(held.length, ids.length)
  })

  await t.test('a process that closes aborts its fetch, and another one makes it at once', async (t) => {
    const held: ServerResponse[] = []
    answers.set('/slow', (response) => { held.push(response) })
    const image = `${HOST}/slow`
    const id = await create(image)
    const closing = start()
    await closing.find(id, image)
    await waitUntil('the request', () => held.length > 0)
    await closing.close()
    t.equal(await closing.find(id, image), undefined)
    answers.set('/slow', send(PNG))
    time += 1
    t.equal(await found(id, image, two), toUrl('image/png', PNG))
    t.strictSame(warnings, [])
  })

  await t.test('a copy that cannot be read keeps nobody from the page', async (t) => {
    const broken = start({ store: { ...store, collection: () => ({ get: async () => { throw storeError(new Error('broken')) } }) } as never })
    t.equal(await broken.find('c', `${HOST}/logo.png`), undefined)
    t.match(errors.shift(), { code: 'ErrDb' })
    await broken.close()
  })

  await t.test('a failure of the store is reported', async (t) => {
    const id = await create()
    const failing = start({ read: async () => { throw storeError(new Error('broken')) } })
    await failing.find(id, `${HOST}/logo.png`)
    t.match(await waitUntil('the report', () => errors.shift()), { code: 'ErrDb' })
    await failing.close()
  })

  t.strictSame(errors, [])
})
