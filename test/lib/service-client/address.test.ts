import t from 'tap'
import { parseServiceAddress } from '../../../lib/service-client/address.ts'

t.test('the address of a service is an origin and a path', async (t) => {
  for (const [text, origin, base] of [
    ['http://h', 'http://h', ''],
    ['https://h/', 'https://h', ''],
    ['http://h:80/a/b//', 'http://h', '/a/b'],
    ['HTTP://H.Example:8080/A%20b', 'http://h.example:8080', '/A%20b'],
    ['http://[::1]:3000', 'http://[::1]:3000', '']
  ] as const) t.strictSame(parseServiceAddress(text), { origin, base }, text)
})

t.test('an error names the option, and never repeats a password', async (t) => {
  for (const [text, message] of [
    ['', /^option issuer: must be an absolute URL$/],
    ['identity', /^option issuer: must be an absolute URL$/],
    ['unix:/run/x', /^option issuer: must be an http or https URL$/],
    ['http://user:hunter2@h', /^option issuer: must not hold credentials$/],
    ['http://user@h', /^option issuer: must not hold credentials$/],
    ['http://h/?a=1', /^option issuer: must not have a query or a fragment$/],
    ['http://h/#a', /^option issuer: must not have a query or a fragment$/]
  ] as const) t.throws(() => parseServiceAddress(text, 'issuer'), { message }, text)
})
