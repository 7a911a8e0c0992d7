import t from 'tap'
import { checkExposure } from '../../../cli/process/exposure.ts'

t.test('production on a public address takes an https issuer', (t) => {
  const check = (host: string, oidc: false | { issuer?: string } = {}, production = true) => () => checkExposure({ host, oidc, services: { production } })
  const refused = /^IDENTITY_ISSUER: must be the https URL of the service in production, because HOST is not a loopback address/
  for (const host of ['0.0.0.0', '::', '192.0.2.1', '2001:db8::1', 'id.example', '128.0.0.1', '::ffff:192.0.2.1']) {
    t.throws(check(host), refused, host)
    t.throws(check(host, { issuer: 'http://id.example' }), refused)
    t.doesNotThrow(check(host, { issuer: 'https://id.example' }))
    t.doesNotThrow(check(host, false), 'without the authorization server')
    t.doesNotThrow(check(host, {}, false), 'not in production')
  }
  for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost']) t.doesNotThrow(check(host), host)
  t.end()
})
