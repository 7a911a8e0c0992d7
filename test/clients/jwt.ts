// JWT access tokens (RFC 9068) are verified by libraries of others. Each program is an API that you can also run against a service of yours:
// ISSUER=https://id.example AUDIENCE=https://orders.example ALG=ES256 ORIGIN=http://127.0.0.1:8080 node jwt/jose.js
import { createHmac } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import { findFreePort } from '../helpers/port.ts'
import { getCode, startHarness } from '../oidc/harness.ts'
import { type LibraryProgram, build, findMissing, startProgram } from './programs.ts'

const HOUR = 60 * 60_000

const PROGRAMS: LibraryProgram[] = [
  { name: 'jose', file: 'jwt/jose.js' },
  { name: 'PyJWT', file: 'jwt/pyjwt.py' },
  { name: 'Authlib', file: 'jwt/authlib_rfc9068.py' },
  { name: 'golang-jwt', file: 'go/jwt', tool: 'go' },
  { name: "Spring Security's resource server", file: 'spring-resource', tool: 'mvn' }
]

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')

/** The token with another value in one of its parts. */
function alter (token: string, part: 0 | 1 | 2, change: (text: string) => string): string {
  return token.split('.').map((text, index) => index === part ? change(text) : text).join('.')
}

t.setTimeout(600_000)

t.test('JWT access tokens, verified by libraries of others', async (t) => {
  const harness = await startHarness(t)
  const { kit, url, post, register, user } = harness
  const { resources } = kit.app.identity
  const declare = async (name: string, tokenAlg: 'RS256' | 'ES256') => {
    await resources.create({ data: { id: `https://${name}.example`, name, scopes: { [`${name}:read`]: 'See it' }, tokenFormat: 'jwt', tokenAlg } })
    return { audience: `https://${name}.example`, scope: `${name}:read` }
  }
  const apis = { RS256: await declare('stock', 'RS256'), ES256: await declare('orders', 'ES256') }
  const scopes = Object.values(apis).map(({ scope }) => scope)
  const app = await register({ scopes })
  const signIn = async (scope: string) => (await post('token', await getCode(harness, app, { scope: `openid ${scope}` }), app)).body as { access_token: string, id_token: string }
  const present = Date.now
  // The times of a token are those of the process, from which the clock of the kit may differ.
  Date.now = () => present() - 2 * HOUR
  const expired = { RS256: (await signIn(apis.RS256.scope)).access_token, ES256: (await signIn(apis.ES256.scope)).access_token }
  Date.now = present
  const keys = JSON.stringify(await (await fetch(`${url}/api/v1/auth/jwks`)).json())

  for (const program of PROGRAMS) {
    const missing = findMissing(program)
    const command = missing === false ? await build(program) : []
    for (const [alg, { audience, scope }] of Object.entries(apis)) {
      await t.test(`${program.name}, ${alg}`, { skip: missing }, async (t) => {
        const ORIGIN = `http://127.0.0.1:${await findFreePort()}`
        await startProgram(t, command, { ISSUER: url, AUDIENCE: audience, ALG: alg, ORIGIN })
        const ask = async (token: string) => {
          const reply = await fetch(ORIGIN, { headers: { authorization: `Bearer ${token}` } })
          return { status: reply.status, text: await reply.text() }
        }
        const { access_token, id_token } = await signIn(scope)
        const own = String((await post('token', { grant_type: 'client_credentials', scope }, app)).body.access_token)
        for (const [token, sub] of [[access_token, user.user_id], [own, app.client_id]] as const) {
          const { status, text } = await ask(token)
          t.equal(status, 200)
          const { aud, ...claims } = JSON.parse(text) as Record<string, unknown>
          t.match(claims, { sub, client_id: app.client_id, scope, jti: decodeJwt(token).jti!, exp: decodeJwt(token).exp! })
          t.strictSame([aud].flat(), [audience])
        }
        const other = alg === 'RS256' ? 'ES256' : 'RS256'
        const unsigned = `${encode({ alg: 'none', typ: 'at+jwt' })}.${access_token.split('.')[1]}.`
        const confused = `${encode({ alg: 'HS256', typ: 'at+jwt' })}.${access_token.split('.')[1]}`
        for (const [what, token] of Object.entries({
          'one for another API': (await signIn(apis[other].scope)).access_token,
          'an ID token': id_token,
          'an expired one': expired[alg as keyof typeof expired],
          'one with other claims': alter(access_token, 1, (text) => encode({ ...JSON.parse(Buffer.from(text, 'base64url').toString()), sub: 'somebody' })),
          'one with another signature': alter(access_token, 2, (text) => text.replace(/^./, (first) => first === 'A' ? 'B' : 'A')),
          'one without a signature': unsigned,
          'one that is signed with the public keys': `${confused}.${createHmac('sha256', keys).update(confused).digest('base64url')}`
        })) t.equal((await ask(token)).status, 401, what)
      })
    }
  }
})
