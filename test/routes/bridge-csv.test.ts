import { parse } from 'csv-parse/sync'
import t from 'tap'
import { startBridge } from '../helpers/bridge.ts'
import { call, startUpstream, type Answer } from '../helpers/upstream.ts'

const HEADER = 'clientId,createdAt,modifiedAt,clientSecret,redirectUris,scopes,userId,name,image'
const HEAD = `\ufeff${HEADER}\n`
const NDJSON = 'application/x-ndjson; charset=utf-8'

type Row = Record<string, unknown>

const client = (index: number, fields: Row = {}): Row => ({
  clientId: `c${index}`,
  createdAt: '2026-11-21T02:51:00.000Z',
  modifiedAt: '2026-11-21T02:52:00.000Z',
  redirectUris: ['https://a.example/x', 'https://b.example/?q=1,2'],
  scopes: [],
  name: `name ${index}`,
  ...fields
})

/** Text that has broken CSV writers, or that spreadsheets run as formulas. */
const TEXTS = [
  'plain', '', ' leading', 'trailing ', '\t tab inside\t', 'a,b', '"', '""', 'say "x", twice', 'line\nbreak', 'carriage\rreturn', 'both\r\nof them',
  '\n', '\r', '\r\n', ',', ',,', '"\n"', 'semi;colon', "'", "''", '\\', '\\"', '\\n', '\u2028\u2029', '\u00a0', '\ufeff', '\ufeffmark', 'mark\ufeffinside',
  '\u00e9\u00df\u6f22\u5b57', '\u{1f600}\u{1f468}\u200d\u{1f469}', '\u0627\u0644\u0639', 'e\u0301', '\u0001\u001f\u007f', '|pipe', 'x'.repeat(70_000),
  '=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '=cmd|\' /C calc\'!A0', '="a,b"', '-', '\uff1d1', '\uff0b1', '\uff0d1', '\uff201', 'a=1', ' =1', "'=1",
  'null', 'undefined', 'true', '1e5', '007', '__proto__', '{"a":1}', '[1,2]'
]

/** OWASP, CSV Injection, with spaces and line breaks before the sign; test/lib/lists/csv.test.ts has more of them. */
function escapeFormula (text: string): string {
  if (text === '\r=1' || text === '\n=1') return `'${text.charAt(0)}'=1`
  return /^(?: ?[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/.test(text) ? `'${text}` : text
}

const readBack = (text: string): Record<string, string>[] => parse(text, { columns: true, bom: true, relax_column_count: false, record_delimiter: '\n' })

const lines = (records: unknown[]) => records.map((record) => JSON.stringify(record) + '\n').join('')

/** Every form of a list, with its media type. */
const FORMS: { name: string, type: string, write: (records: unknown[]) => string }[] = [
  { name: 'NDJSON', type: NDJSON, write: lines },
  { name: 'NDJSON without the last newline', type: 'application/ndjson', write: (records) => lines(records).slice(0, -1) },
  { name: 'NDJSON with blank lines and CRLF', type: 'Application/X-NDJSON', write: (records) => `\r\n\n${lines(records).replaceAll('\n', '\r\n\n')}` },
  { name: 'JSON object', type: 'application/json; charset=utf-8', write: (data) => JSON.stringify({ data }) },
  { name: 'JSON object with more in it', type: 'application/json', write: (data) => JSON.stringify({ meta: { data: [1] }, total: 2, data, next: [{ data: 'x' }] }, null, 2) },
  { name: 'JSON array', type: 'application/json', write: (records) => JSON.stringify(records) },
  { name: 'JSON array with space around', type: 'application/hal+json', write: (records) => `\n\t ${JSON.stringify(records, null, 1)}\r\n ` }
]

t.test('another CSV reader reads back any text in any cell', async (t) => {
  const records = TEXTS.map((text, index) => client(index, { name: text, image: text, userId: text, clientSecret: text, redirectUris: [text], scopes: [text, text] }))
  for (const form of FORMS) {
    const upstream = await startUpstream(t, (response) => {
      response.writeHead(200, { 'content-type': form.type })
      response.end(form.write(records))
    })
    for (const escapeFormulae of [true, false]) {
      const { url } = await startBridge(t, { upstream: upstream.url, escapeFormulae })
      const reply = await call(`${url}/list?format=csv`)
      const cell = (text: string) => (escapeFormulae ? escapeFormula(text) : text)
      t.ok(reply.complete)
      t.ok(reply.text.startsWith(HEAD) && reply.text.endsWith('\n'), form.name)
      t.strictSame(readBack(reply.text), records.map((record, index) => {
        const text = cell(TEXTS[index] as string)
        return {
          clientId: record.clientId,
          createdAt: record.createdAt,
          modifiedAt: record.modifiedAt,
          clientSecret: text,
          redirectUris: JSON.stringify(record.redirectUris),
          scopes: JSON.stringify(record.scopes),
          userId: text,
          name: text,
          image: text
        }
      }), `${form.name}, escapeFormulae ${escapeFormulae}`)
    }
  }
})

t.test('the bytes are as documented', async (t) => {
  const records = [
    client(1, { clientSecret: 's', userId: 'u', image: 'https://i.example/x.png', name: 'a "b", c' }),
    client(2, { redirectUris: [], name: '' })
  ]
  const upstream = await startUpstream(t, (response) => response.writeHead(200, { 'content-type': NDJSON }).end(lines(records)))
  const { url } = await startBridge(t, { upstream: upstream.url })
  const reply = await call(`${url}/list?format=csv`)
  t.equal(reply.text, HEAD +
    'c1,2026-11-21T02:51:00.000Z,2026-11-21T02:52:00.000Z,s,"[""https://a.example/x"",""https://b.example/?q=1,2""]",[],u,"a ""b"", c",https://i.example/x.png\n' +
    'c2,2026-11-21T02:51:00.000Z,2026-11-21T02:52:00.000Z,,[],[],,,\n')
})

t.test('an empty list is only the header', async (t) => {
  for (const { name, type, write } of FORMS) {
    const upstream = await startUpstream(t, (response) => response.writeHead(200, { 'content-type': type }).end(write([])))
    const { url } = await startBridge(t, { upstream: upstream.url })
    t.equal((await call(`${url}/list?format=csv`)).text, HEAD, name)
  }
})

t.test('chunks may end anywhere, also within a character', async (t) => {
  const records = ['\u{1f600}\u00e9\u6f22', 'two\n', '\\u0041"'].map((name, index) => client(index, { name }))
  for (const { name, type, write } of FORMS) {
    const bytes = Buffer.from(write(records))
    for (const size of [1, 2, 3, 7, 64]) {
      const upstream = await startUpstream(t, async (response) => {
        response.writeHead(200, { 'content-type': type })
        response.socket?.setNoDelay(true)
        for (let at = 0; at < bytes.length; at += size) {
          response.write(bytes.subarray(at, at + size))
          // Makes each write a chunk of its own.
          await new Promise((resolve) => setImmediate(resolve))
        }
        response.end()
      })
      const { url, app } = await startBridge(t, { upstream: upstream.url })
      t.strictSame(readBack((await call(`${url}/list?format=csv`)).text).map((row) => row.name), ['\u{1f600}\u00e9\u6f22', 'two\n', '\\u0041"'], `${name} by ${size}`)
      await app.close()
      await upstream.close()
    }
  }
})

const small: Answer = (response) => response.writeHead(200, {
  'content-type': NDJSON, etag: '"j"', 'content-length': String(Buffer.byteLength(lines([client(1)]))), 'set-cookie': ['a=1', 'b=2'], 'x-request-id': 'r', vary: 'Origin', 'cache-control': 'no-store'
}).end(lines([client(1)]))

t.test('the answer is CSV when the query or Accept asks for it', async (t) => {
  const upstream = await startUpstream(t, small)
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const [query, accept, csv, passed] of [
    ['', undefined, false, ''],
    ['', '*/*', false, ''],
    ['', 'application/json', false, ''],
    ['', 'text/csv', true, '?limit=0'],
    ['', 'text/csv;q=0.5, application/json;q=0.4', true, '?limit=0'],
    ['', 'text/csv;q=0.5, application/json', false, ''],
    ['?limit=0', 'text/html, text/csv', true, '?limit=0'],
    ['?format=csv', undefined, true, '?limit=0'],
    ['?format=csv', 'application/json', true, '?limit=0'],
    ['?format=csv&sort=name%3Adesc', undefined, true, '?sort=name%3Adesc&limit=0'],
    ['?format=csv&%6Cimit=5', undefined, true, '?%6Cimit=5'],
    ['?format=csv&limit=', undefined, true, '?limit='],
    ['?user=u&sort=name%3Adesc&format=csv&offset=2&limit=0', undefined, true, '?user=u&sort=name%3Adesc&offset=2&limit=0'],
    ['?%66ormat=%63sv&limit=1', undefined, true, '?limit=1'],
    ['?format=csv&format=csv', undefined, true, '?limit=0'],
    ['?format=array', undefined, false, '?format=array'],
    ['?format=CSV', undefined, false, '?format=CSV'],
    ['?xformat=csv&format=', undefined, false, '?xformat=csv&format=']
  ] as const) {
    const reply = await call(`${url}/list${query}`, { headers: accept === undefined ? {} : { accept } })
    const seen = upstream.seen.at(-1)
    const name = `${query} ${accept}`
    t.equal(seen?.url, `/api/v1/client/list${passed}`, name)
    t.equal(reply.headers['content-type'], csv ? 'text/csv; charset=utf-8' : NDJSON, name)
    t.equal(reply.text.startsWith(HEAD), csv, name)
    t.equal(seen?.headers.accept, csv ? 'application/x-ndjson, application/json;q=0.9' : accept, name)
    t.equal(reply.headers.vary, 'Accept, Origin', name)
  }
})

t.test('fields selects columns, for any answer of the upstream', async (t) => {
  const records = [client(1, { clientSecret: 's', userId: 'u', grants: ['code'], disabled: true })]
  const upstream = await startUpstream(t, (response) => response.writeHead(200, { 'content-type': NDJSON }).end(lines(records)))
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const [fields, text] of [
    ['', `${HEADER}\nc1,2026-11-21T02:51:00.000Z,2026-11-21T02:52:00.000Z,s,"[""https://a.example/x"",""https://b.example/?q=1,2""]",[],u,name 1,\n`],
    ['name', 'clientId,name\nc1,name 1\n'],
    ['name,scopes,clientId,name', 'clientId,scopes,name\nc1,[],name 1\n'],
    ['grants,image,disabled,name', 'clientId,name,image,grants,disabled\nc1,name 1,,"[""code""]",true\n']
  ] as const) {
    const reply = await call(`${url}/list?format=csv&fields=${encodeURIComponent(fields)}`)
    t.equal(reply.text, `\ufeff${text}`, fields)
    t.equal(upstream.seen.at(-1)?.url, `/api/v1/client/list?fields=${encodeURIComponent(fields)}&limit=0`)
  }
  const reply = await call(`${url}/list?format=csv&fields=name,secret`)
  t.match(JSON.parse(reply.text), { statusCode: 400, code: 'ErrParam', message: /^fields: unknown field 'secret', expected some of clientId, createdAt/ })
  t.equal(reply.headers['content-disposition'], undefined)
})

t.test('the header fields describe the CSV, not the upstream JSON', async (t) => {
  const upstream = await startUpstream(t, small)
  const { url } = await startBridge(t, { upstream: upstream.url, filename: 'my clients.csv' })
  const { headers } = await call(`${url}/list?format=csv`, { headers: { 'if-none-match': '"j"', range: 'bytes=0-1', 'accept-encoding': 'gzip' } })
  t.match(headers, {
    'content-disposition': 'attachment; filename="my clients.csv"',
    'x-content-type-options': 'nosniff',
    'x-request-id': 'r',
    'cache-control': 'no-store'
  })
  t.equal(headers.etag, undefined)
  t.equal(headers['content-length'], undefined)
  const seen = upstream.seen[0]?.headers ?? {}
  t.equal(seen['if-none-match'], undefined)
  t.equal(seen.range, undefined)
  t.equal(seen['accept-encoding'], 'identity')
})

t.test('an error of the upstream is relayed unchanged', async (t) => {
  const upstream = await startUpstream(t, (response, { headers }) => {
    response.writeHead(Number(headers['x-status']), { 'content-type': 'application/json', 'www-authenticate': 'Bearer', 'retry-after': '3', 'content-length': '2' })
    response.end('{}')
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const status of [301, 400, 401, 403, 404, 429, 500, 503]) {
    const reply = await call(`${url}/list?format=csv`, { headers: { 'x-status': String(status) } })
    t.equal(reply.status, status)
    t.match(reply.headers, { 'content-type': 'application/json', 'www-authenticate': 'Bearer', 'retry-after': '3' })
    t.equal(reply.headers['content-disposition'], undefined)
    t.equal(reply.text, '{}')
  }
})

const good = JSON.stringify(client(1))
const NOT_LISTS: [string, string, number, string | Buffer][] = [
  ['a count', 'application/json', 200, '{"data":{"count":1}}'],
  ['clients in an object', 'application/json', 200, `{"data":{"a":${good}}}`],
  ['an object without data', 'application/json', 200, '{"rows":[]}'],
  ['data deeper down', 'application/json', 200, `{"a":{"data":[${good}]}}`],
  ['data as a value', 'application/json', 200, '{"a":"data","b":[]}'],
  ['data twice', 'application/json', 200, `{"data":[],"data":[${good}]}`],
  ['an array of numbers', 'application/json', 200, '[1]'],
  ['an array of arrays', 'application/json', 200, '[[]]'],
  ['records of another kind', 'application/json', 200, '{"data":[{"user_id":"u"}]}'],
  ['a number', 'application/json', 200, '7'],
  ['nothing', 'application/json', 200, ''],
  ['space', 'application/json', 200, ' \n '],
  ['no JSON', 'application/json', 200, '<p>'],
  ['a part of JSON', 'application/json', 200, '{"data":['],
  ['bytes that are not UTF-8, in JSON', 'application/json', 200, Buffer.from('[{"clientId":"\xff"}]', 'latin1')],
  ['bytes that are not UTF-8, on a line', NDJSON, 200, Buffer.from('{"clientId":"\xff"}\n', 'latin1')],
  ['a line that is no record', NDJSON, 200, '1\n'],
  ['a line that is null', NDJSON, 200, 'null\n'],
  ['a line that is an array', NDJSON, 200, '[]\n'],
  ['a line that is not JSON', NDJSON, 200, 'oops\n'],
  ['a record of another kind', NDJSON, 200, '{"user_id":"u"}\n'],
  ['a part of a line', NDJSON, 200, '{"clientId":"c'],
  ['HTML', 'text/html', 200, '<p>login</p>'],
  ['no type', '', 200, '[]'],
  ['another success', 'application/json', 202, '[]']
]

t.test('a body that is not a list is ErrRsc', async (t) => {
  const upstream = await startUpstream(t, (response, { headers }) => {
    const [, type, status, body] = NOT_LISTS[Number(headers['x-index'])] as typeof NOT_LISTS[number]
    response.writeHead(status, type === '' ? {} : { 'content-type': type })
    response.end(body)
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const [index, [name]] of NOT_LISTS.entries()) {
    const reply = await call(`${url}/list?format=csv`, { headers: { 'x-index': String(index) } })
    const { message, ...rest } = JSON.parse(reply.text)
    t.strictSame(rest, { statusCode: 502, code: 'ErrRsc', error: 'Bad Gateway' }, name)
    t.match(message, /^the upstream sent a list that is not one/, name)
    t.equal(reply.headers['content-type'], 'application/json', name)
    t.equal(reply.headers['content-disposition'], undefined, name)
  }
})

t.test('a compressed list is ErrRsc, since the bridge did not ask for one', async (t) => {
  const upstream = await startUpstream(t, (response) => response.writeHead(200, { 'content-type': NDJSON, 'content-encoding': 'gzip' }).end(`${good}\n`))
  const { url } = await startBridge(t, { upstream: upstream.url })
  const reply = await call(`${url}/list?format=csv`)
  t.equal(JSON.parse(reply.text).code, 'ErrRsc')
  t.equal(reply.headers['content-encoding'], undefined)
})
