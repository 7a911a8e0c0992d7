import t from 'tap'
import { readMetadata } from '../../../lib/remote/service-location.ts'

const issuer = 'https://id.example'

t.test('the endpoint is in the metadata, or beside the token endpoint', async (t) => {
  for (const [metadata, origin, base] of [
    [{ tokeninfo_endpoint: 'https://id.example/info' }, issuer, '/info'],
    [{ tokeninfo_endpoint: 'https://api.example:8443/' }, 'https://api.example:8443', '/'],
    [{ token_endpoint: 'https://id.example/api/v1/auth/token' }, issuer, '/api/v1/auth/tokeninfo'],
    [{ token_endpoint: 'https://id.example/x/api/v1/auth/token' }, issuer, '/x/api/v1/auth/tokeninfo'],
    [{ token_endpoint: 'https://id.example/api/v1/auth/token', tokeninfo_endpoint: 'https://id.example/info' }, issuer, '/info']
  ] as const) t.strictSame(readMetadata(JSON.stringify({ issuer, ...metadata }), issuer), { origin, base })
})

t.test('metadata of another issuer, or with a less secure endpoint, are refused', async (t) => {
  const tokeninfo_endpoint = 'https://id.example/info'
  for (const [text, message] of [
    ['', /JSON/],
    ['null', /not an object/],
    ['[]', /another issuer/],
    [JSON.stringify({ tokeninfo_endpoint }), /another issuer/],
    [JSON.stringify({ issuer: 'https://id.example/', tokeninfo_endpoint }), /another issuer/],
    [JSON.stringify({ issuer }), /no tokeninfo_endpoint/],
    [JSON.stringify({ issuer, tokeninfo_endpoint: 3 }), /no tokeninfo_endpoint/],
    [JSON.stringify({ issuer, token_endpoint: 'https://id.example/oauth/token' }), /no tokeninfo_endpoint/],
    [JSON.stringify({ issuer, tokeninfo_endpoint: 'http://id.example/info' }), /without TLS/],
    [JSON.stringify({ issuer, tokeninfo_endpoint: 'file:///info' }), /must be an http or https URL/],
    [JSON.stringify({ issuer, tokeninfo_endpoint: 'https://u:p@id.example/info' }), /must not hold credentials/]
  ] as const) t.throws(() => readMetadata(text, issuer), { message }, text)
})
