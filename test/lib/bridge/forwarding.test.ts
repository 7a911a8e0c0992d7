import t from 'tap'
import { chooseDrops, endToEnd, forwardingFields } from '../../../lib/bridge/forwarding.ts'

t.test('end-to-end fields', async (t) => {
  const none = new Set<string>()
  for (const [name, headers, kept] of [
    ['nothing', {}, {}],
    ['absent fields', { a: undefined, b: 'x' }, { b: 'x' }],
    ['hop-by-hop fields', { connection: 'close', 'keep-alive': 'x', te: 'x', trailer: 'x', 'transfer-encoding': 'chunked', upgrade: 'x', 'proxy-authenticate': 'x', 'proxy-authorization': 'x', 'proxy-connection': 'x', 'x-b': 'y' }, { 'x-b': 'y' }],
    ['fields that Connection lists, in any case', { connection: ' X-A ,x-b,, ', 'x-a': '1', 'x-b': '2', 'x-c': '3' }, { 'x-c': '3' }],
    ['several Connection fields', { connection: ['x-a', 'x-b'], 'x-a': '1', 'x-b': '2' }, {}],
    ['several values', { 'set-cookie': ['a', 'b'] }, { 'set-cookie': ['a', 'b'] }],
    ['pseudo fields of HTTP/2', { ':path': '/', ':authority': 'h', accept: '*/*' }, { accept: '*/*' }]
  ] as const) t.strictSame({ ...endToEnd(headers as Record<string, string>, none) }, kept, name)
  const fields = { host: 'h', expect: '100-continue', accept: 'x', cookie: 'a=1' }
  t.strictSame({ ...endToEnd(fields, chooseDrops(false).request) }, { accept: 'x' })
  t.strictSame({ ...endToEnd(fields, chooseDrops(true).request) }, { accept: 'x', cookie: 'a=1' })
  const headers = { connection: 'x-a', 'x-a': '1' }
  endToEnd(headers, none)
  t.strictSame(headers, { connection: 'x-a', 'x-a': '1' }, 'the input is not modified')
})

t.test('Forwarded, X-Forwarded and Via', async (t) => {
  const peer = { address: '192.0.2.1', host: 'h.example:8080', protocol: 'http' }
  const own = 'for=192.0.2.1;host="h.example:8080";proto=http'
  for (const [name, headers, given, expected] of [
    ['none before', {}, peer, { forwarded: own, 'x-forwarded-for': '192.0.2.1', 'x-forwarded-host': 'h.example:8080', 'x-forwarded-proto': 'http', via: '1.1 fastify-identity' }],
    ['lists are appended to', { forwarded: 'for=a', 'x-forwarded-for': 'a, b', via: '1.0 x' }, peer, { forwarded: `for=a, ${own}`, 'x-forwarded-for': 'a, b, 192.0.2.1', via: '1.0 x, 1.1 fastify-identity' }],
    ['single values are set', { 'x-forwarded-host': 'evil', 'x-forwarded-proto': 'https' }, peer, { 'x-forwarded-host': 'h.example:8080', 'x-forwarded-proto': 'http' }],
    ['IPv6', {}, { ...peer, address: '2001:db8::1' }, { forwarded: 'for="[2001:db8::1]";host="h.example:8080";proto=http', 'x-forwarded-for': '2001:db8::1' }],
    ['IPv4 on a dual-stack socket', {}, { ...peer, address: '::ffff:192.0.2.1' }, { forwarded: own, 'x-forwarded-for': '192.0.2.1' }],
    ['a Unix socket', { 'x-forwarded-for': 'a' }, { ...peer, address: undefined }, { forwarded: 'for=unknown;host="h.example:8080";proto=http', 'x-forwarded-for': 'a' }],
    ['a host that ends the quotes', {}, { ...peer, host: 'a";for="1\\' }, { forwarded: 'for=192.0.2.1;host="a\\";for=\\"1\\\\";proto=http' }]
  ] as const) t.match(forwardingFields(headers, given), expected, name)
  t.equal(forwardingFields({}, { ...peer, address: undefined })['x-forwarded-for'], undefined)
  t.equal(forwardingFields({}, { ...peer, host: '' })['x-forwarded-host'], undefined)
})

t.test('only a well-formed Forwarded field is extended', async (t) => {
  for (const [before, kept] of [
    ['for=192.0.2.43', true],
    ['For="[2001:db8:cafe::17]:4711"', true],
    ['for=192.0.2.60;proto=http;by=203.0.113.43', true],
    ['for=192.0.2.43, for="a\\"b;c,d" ; host=x', true],
    ['for=192.0.2.43:80', true],
    ['for="open', false],
    ['for=a, for="open', false],
    ['for="x\\"', false],
    ['for', false],
    ['for=', false],
    ['for=a b', false],
    ['for=a;', false],
    [`${'for=a,'.repeat(2000)}"`, false]
  ] as const) {
    const { forwarded } = forwardingFields({ forwarded: before }, { address: '192.0.2.1', host: 'h', protocol: 'http' })
    const own = 'for=192.0.2.1;host="h";proto=http'
    t.equal(forwarded, kept ? `${before}, ${own}` : own, before.slice(0, 40))
  }
})
