import t from 'tap'
import { readBridgeOptions } from '../../../lib/bridge/bridge-options.ts'

const upstream = 'http://identity:3000'

t.test('defaults are filled in, in a copy', async (t) => {
  const given = Object.freeze({ upstream, filename: undefined })
  t.strictSame(readBridgeOptions(given), {
    upstream: { origin: upstream, base: '' },
    escapeFormulae: true,
    filename: 'clients.csv',
    bodyLimit: 65_536,
    maxConnections: 64,
    connectTimeout: 5_000,
    headersTimeout: 30_000,
    bodyTimeout: 60_000,
    stallTimeout: 60_000
  })
})

t.test('the upstream is an origin and a path', async (t) => {
  for (const [text, origin, base] of [
    ['http://h', 'http://h', ''],
    ['https://h/', 'https://h', ''],
    ['http://h:80/a/b//', 'http://h', '/a/b'],
    ['HTTP://H.Example:8080/A%20b', 'http://h.example:8080', '/A%20b'],
    ['http://[::1]:3000', 'http://[::1]:3000', '']
  ] as const) t.strictSame(readBridgeOptions({ upstream: text }).upstream, { origin, base }, text)
})

t.test('a wrong option is named, and a password in it is not told', async (t) => {
  for (const [options, message] of [
    [{}, /^option upstream: /],
    [{ upstream: 3 }, /^option upstream: /],
    [{ upstream: '' }, /^option upstream: /],
    [{ upstream: 'identity' }, /^option upstream: must be an absolute URL$/],
    [{ upstream: 'unix:/run/x' }, /^option upstream: must be an http or https URL$/],
    [{ upstream: 'http://user:hunter2@h' }, /^option upstream: must not hold credentials$/],
    [{ upstream: 'http://user@h' }, /^option upstream: must not hold credentials$/],
    [{ upstream: 'http://h/?a=1' }, /^option upstream: must not have a query or a fragment$/],
    [{ upstream: 'http://h/#a' }, /^option upstream: must not have a query or a fragment$/],
    [{ upstream, escapeFormulae: 'yes' }, /^option escapeFormulae: must be boolean$/],
    [{ upstream, filename: 'a"b' }, /^option filename: /],
    [{ upstream, filename: '../x' }, /^option filename: /],
    [{ upstream, filename: 'a\r\nb: c' }, /^option filename: /],
    [{ upstream, bodyLimit: -1 }, /^option bodyLimit: /],
    [{ upstream, maxConnections: 0 }, /^option maxConnections: /],
    [{ upstream, connectTimeout: '5' }, /^option connectTimeout: must be integer$/],
    [{ upstream, headersTimeout: 0 }, /^option headersTimeout: /],
    [{ upstream, bodyTimeout: 1.5 }, /^option bodyTimeout: /],
    [{ upstream, stallTimeout: null }, /^option stallTimeout: /],
    [{ upstream, upstreams: 'x' }, /^option upstreams: /]
  ] as const) t.throws(() => readBridgeOptions(options), { message }, JSON.stringify(options))
})
