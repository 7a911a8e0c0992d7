import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { DocumentError } from '../../../lib/client-documents/error.ts'
import { type Hosts, createHosts, readUrl } from '../../../lib/client-documents/hosts.ts'
import { judgeDocument, toHash, toPrint } from '../../../lib/client-documents/judge.ts'
import { createOptionsReader } from '../../../lib/options.ts'
import { OidcOptionsSchema } from '../../../schemas/oidc.ts'

const ID = 'https://agent.example/client.json'
const GOOD = { client_id: ID, client_name: 'An agent', redirect_uris: ['https://agent.example/callback'] }
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PUBLIC = rsa.publicKey.export({ format: 'jwk' })
const PRIVATE = rsa.privateKey.export({ format: 'jwk' })

const judge = (fields: object, redirects: string[] = []) => judgeDocument(new URL(ID), JSON.stringify({ ...GOOD, ...fields }), { redirects })

/** The rule that a document breaks, and the value that the refusal shows. */
function refusal (fields: object, redirects?: string[]): [string, string] | undefined {
  try {
    judge(fields, redirects)
  } catch (error) {
    if (error instanceof DocumentError) return [error.rule, error.value]
    throw error
  }
}

t.test('what is kept of a document is a list: any other member has no effect', async (t) => {
  const expected = { client_name: 'An agent', redirect_uris: GOOD.redirect_uris, method: 'none' }
  t.strictSame(judge({}), expected)
  const others = {
    'our own properties of a client': { first_party: true, vouched: true, own_scopes: ['users:read'], declared_scopes: ['users:read'], registered_uris: ['https://evil.example/'], owner: 'admin', epoch: -1, public: false, pkce: 'optional', id_token_claims: true, grants: ['client'], document: { print: '', accepted: true } },
    'keycloak#50529: sector_identifier_uri': { sector_identifier_uri: 'https://169.254.169.254/latest', subject_type: 'pairwise' },
    'keycloak#50530: backchannel_logout_uri, frontchannel_logout_uri, request_uris': { backchannel_logout_uri: 'https://10.0.0.1/', frontchannel_logout_uri: 'https://10.0.0.1/', request_uris: ['https://10.0.0.1/'], backchannelLogoutUri: 'https://10.0.0.1/' },
    'keycloak#50747: post_logout_redirect_uris': { post_logout_redirect_uris: ['https://evil.example/'] },
    'keycloak#50746: CIBA': { backchannel_token_delivery_mode: 'ping', backchannel_client_notification_endpoint: 'https://10.0.0.1/' },
    'uploads#990: skip_consent, trusted': { skip_consent: true, trusted: true },
    'grants and responses': { grant_types: ['client_credentials', 'urn:ietf:params:oauth:grant-type:device_code', 'implicit'], response_types: ['token'] },
    'secrets and texts': { client_secret: 'known', client_secret_expires_at: 0, logo_uri: 'https://10.0.0.1/', tos_uri: 'javascript:alert(1)', policy_uri: 'data:,', contacts: ['x'], client_uri: 'https://10.0.0.1/' },
    'members of every object': { __proto__: null, constructor: { prototype: {} }, toString: 1 },
    'keys at a URL, of a client that does not authenticate': { jwks_uri: 'https://10.0.0.1/keys' }
  }
  for (const [name, fields] of Object.entries(others)) t.strictSame(judge(fields), expected, name)
  const proto = JSON.stringify(GOOD).replace('{', '{"__proto__":{"first_party":true,"jwks":{}},')
  t.strictSame(judgeDocument(new URL(ID), proto, { redirects: [] }), expected)
})

t.test('keycloak#50748: each redirect URI is on the host of the client, on a named one, or on the device', async (t) => {
  const uris = (...redirect_uris: unknown[]) => ({ redirect_uris })
  const own = 'https://agent.example/callback'
  for (const uri of [own, 'https://agent.example/other?a=b', 'http://127.0.0.1/callback', 'http://127.0.0.1:33418/', 'http://localhost/callback', 'http://[::1]:1/']) {
    t.strictSame(judge(uris(uri)).redirect_uris, [uri], uri)
  }
  for (const uri of [
    'https://evil.example/callback', 'https://agent.example.evil.example/', 'https://agent.example:8443/callback', 'https://sub.agent.example/callback', 'com.example.app:/callback', 'editor:callback', 'javascript:alert(1)'
  ]) t.strictSame(refusal(uris(own, uri)), ['redirect_host', uri], uri)
  for (const uri of [
    'http://agent.example/callback', 'http://10.0.0.1/', 'https://agent.example@evil.example/', 'https://agent.example/#a', 'https://agent.example/?code=x', '/callback', 'http://127.0.0.1.evil.example/', 7, null, {}
  ]) t.equal(refusal(uris(own, uri))?.[0], 'redirect_uris', JSON.stringify(uri))
  for (const list of [[], 'https://agent.example/', undefined, Array(101).fill(own)]) t.equal(refusal({ redirect_uris: list })?.[0], 'redirect_uris')
  const named = ['cdn.example', 'editor:', 'javascript:']
  for (const uri of ['https://cdn.example/cb', 'editor:callback', 'editor://x/y']) t.strictSame(judge(uris(uri), named).redirect_uris, [uri])
  for (const uri of ['javascript:alert(1)', 'https://sub.cdn.example/', 'editor2:x']) t.equal(refusal(uris(uri), named)?.[0], 'redirect_host', uri)
  for (const uri of ['editor://x/?code=y&state=z', 'editor:a\r\nset-cookie: b=c', 'editor:a b', 'editor://a@b/', 'editor:a#b', `editor:${'a'.repeat(3000)}`]) {
    t.equal(refusal(uris(uri), named)?.[0], 'redirect_uris', JSON.stringify(uri.slice(0, 40)))
  }
  t.strictSame(refusal(uris(own, 'https://evil.example/cb?token=secret#x'))?.[1], 'https://evil.example/cb', 'the refusal leaves out the query')
})

t.test('the name, the method, the scope and the id', async (t) => {
  for (const client_id of ['https://agent.example/client.json/', 'https://AGENT.example/client.json', 'https://agent.example:443/client.json', 'https://other.example/client.json', 7, undefined]) {
    t.equal(refusal({ client_id })?.[0], 'client_id', String(client_id))
  }
  for (const client_name of [undefined, '', '  ', 7, 'x'.repeat(257), 'Bank\u202Egpj', 'a\nb', 'a\u200bb']) t.equal(refusal({ client_name })?.[0], 'client_name', JSON.stringify(client_name))
  t.notMatch(refusal({ client_name: 'Bank\u202Egpj\n' })?.[1], /[\u202e\n]/, 'what is shown of it hides nothing')
  for (const method of ['client_secret_basic', 'client_secret_post', 'client_secret_jwt', 'tls_client_auth', '', 7]) t.equal(refusal({ token_endpoint_auth_method: method })?.[0], 'token_endpoint_auth_method', String(method))
  t.strictSame(judge({ scope: 'b a b' }).scope, ['a', 'b'])
  for (const scope of [7, [], 'x'.repeat(129), Array(101).fill(0).map((_, index) => `s${index}`).join(' ')]) t.equal(refusal({ scope })?.[0], 'scope')
  for (const text of ['', 'null', '[]', '7', '"x"', '{', '<html>']) t.throws(() => judgeDocument(new URL(ID), text, { redirects: [] }), { name: 'DocumentError', rule: 'json' }, text)
})

t.test('keys are public, asymmetric and few; their URL is on the same host, and never beside them', async (t) => {
  const asks = (fields: object) => ({ token_endpoint_auth_method: 'private_key_jwt', ...fields })
  const { n, e } = PUBLIC
  t.strictSame(judge(asks({ jwks: { keys: [{ ...PUBLIC, kid: '1', alg: 'RS256', x5u: 'https://10.0.0.1/', x5c: ['x'] }] } })).keys, [{ kty: 'RSA', kid: '1', alg: 'RS256', n, e }])
  for (const keys of [[PRIVATE], [PUBLIC, PRIVATE], [{ kty: 'oct', k: 'c2VjcmV0' }], [{ kty: 'oct' }], [{ kty: 'RSA' }], [{ ...PUBLIC, e: n }], [PUBLIC, { ...PUBLIC, e: 'AQAC' }], [{ kty: 'EC', crv: 'P-256', x: 'a', y: 'b' }], ['x'], [null], [], Array(6).fill(PUBLIC), 'x', undefined]) {
    t.equal(refusal(asks({ jwks: { keys } }))?.[0], 'jwks', JSON.stringify(keys)?.slice(0, 40))
  }
  t.notMatch(JSON.stringify(refusal(asks({ jwks: { keys: [PRIVATE] } }))), PRIVATE.d, 'a private key is not repeated')
  t.equal(refusal({ jwks: { keys: [PRIVATE] } })?.[0], 'jwks', 'also of a client that does not authenticate')
  t.strictSame(judge(asks({ jwks_uri: 'https://agent.example/keys' })).jwks_uri, 'https://agent.example/keys')
  for (const jwks_uri of ['https://keys.agent.example/', 'http://agent.example/keys', 'https://agent.example:8443/keys', 'https://u@agent.example/keys', 'https://169.254.169.254/', 'x', 7]) {
    t.equal(refusal(asks({ jwks_uri }))?.[0], 'jwks_uri', String(jwks_uri))
  }
  t.equal(refusal(asks({ jwks_uri: 'https://agent.example/keys', jwks: { keys: [PUBLIC] } }))?.[0], 'jwks_uri', 'beside jwks')
  const signs = (value: unknown, rest: object = {}) => asks({ jwks: { keys: [PUBLIC] }, require_signed_request_object: value, ...rest })
  t.equal(judge(signs(true)).require_signed_request_object, true)
  t.equal(judge(signs(false)).require_signed_request_object, undefined)
  for (const value of ['true', 1, null, {}]) t.equal(refusal(signs(value))?.[0], 'require_signed_request_object', JSON.stringify(value))
  t.equal(refusal(signs(true, { token_endpoint_auth_method: 'none' }))?.[0], 'require_signed_request_object', 'a client that does not authenticate')
  t.equal(refusal(asks({}))?.[0], 'jwks', 'without keys')
})

t.test('people decide on the name, the redirect URIs and the method', async (t) => {
  const body = judge({})
  t.equal(toPrint(body), toPrint(judge({ scope: 'a' })))
  t.not(toHash(body), toHash(judge({ scope: 'a' })))
  for (const fields of [{ client_name: 'Another' }, { redirect_uris: [...GOOD.redirect_uris, 'http://127.0.0.1/'] }]) t.not(toPrint(body), toPrint(judge(fields)))
  t.not(toPrint(body), toPrint({ ...body, method: 'private_key_jwt' }))
})

function passes (hosts: Hosts, url: string): boolean {
  try {
    hosts.check(new URL(url))
    return true
  } catch (error) {
    if (error instanceof DocumentError && error.rule === 'host') return false
    throw error
  }
}

t.test('a client id is an https URL with a path, written in the one way', async (t) => {
  t.equal(readUrl(ID).href, ID)
  for (const id of [
    'https://agent.example', 'https://agent.example/', 'http://agent.example/a', 'https://u:p@agent.example/a', 'https://agent.example/a#b', 'https://agent.example/a#', 'https://Agent.example/a',
    'https://agent.example:443/a', 'https://agent.example/a/../b', 'https://agent.example/./a', 'https://agent.example/ä', 'https://agent.example\\a', 'https://agent.example/a b', ' https://agent.example/a',
    'https:agent.example/a', 'https://0x7f000001/a', `https://agent.example/${'x'.repeat(107)}`, 'https://'
  ]) t.throws(() => readUrl(id), { name: 'DocumentError', rule: 'url' }, id)
  t.ok(readUrl(`https://agent.example/${'x'.repeat(106)}`), '128 characters')
  const hosts = createHosts(['agent.example', { host: 'editor.example', redirects: ['CDN.example', 'editor:'] }])
  t.strictSame(hosts.listRedirects(new URL('https://editor.example/a')), ['cdn.example', 'editor:'])
  for (const [url, isAllowed] of [[ID, true], ['https://evil.example/a', false], ['https://sub.agent.example/a', false], ['https://agent.example:8443/a', false], ['https://agent.example.evil.example/a', false]] as const) {
    t.equal(passes(hosts, url), isAllowed, url)
    t.equal(passes(createHosts('*'), url), !url.includes(':8443'), `${url} of any host`)
  }
  const beside = createHosts(['*', 'agent.example:8443', { host: 'editor.example:9443', redirects: ['editor:'] }])
  for (const [url, isAllowed] of [
    [ID, true], ['https://any.example/a', true], ['https://agent.example:8443/a', true], ['https://editor.example:9443/a', true],
    ['https://agent.example:22/a', false], ['https://any.example:8443/a', false], ['https://any.example:80/a', false]
  ] as const) t.equal(passes(beside, url), isAllowed, url)
  t.strictSame(beside.listRedirects(new URL('https://editor.example:9443/a')), ['editor:'])
  t.ok(passes(createHosts(['agent.example:443']), ID), 'the usual port by its number')
})

t.test('the option takes hosts with their ports, localhost among them, and says what is wrong with others', async (t) => {
  const read = createOptionsReader(OidcOptionsSchema)
  for (const hosts of ['*', ['*'], ['*', 'agent.example:8443'], ['agent.example', 'localhost', 'localhost:8443', '127.0.0.1:8443'], [{ host: 'localhost:8443', redirects: ['localhost:9000', 'cdn.example', 'editor:'] }]]) t.strictSame(read({ documents: { hosts } }).documents, { hosts })
  const entry = /^option documents\.hosts\.0: must be `\*`, a host such as agent\.example or localhost:8443, or \{ host, redirects \}/
  for (const host of ['Agent.example', 'agent', 'https://agent.example', 'agent.example:x', { host: 'agent.example' }, { host: 'agent.example', redirects: ['editor'] }]) t.throws(() => read({ documents: { hosts: [host] } }), { message: entry }, JSON.stringify(host))
  for (const hosts of ['agent.example', []]) t.throws(() => read({ documents: { hosts } }), { message: /^option documents\.hosts: must be `\*`, or a list of 1 to 100 entries/ })
})
