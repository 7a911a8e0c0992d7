// An API that verifies JWT access tokens by jose.
import { createServer } from 'node:http'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const { ISSUER: issuer, AUDIENCE: audience, ALG, ORIGIN } = process.env
const { jwks_uri: address } = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
const keys = createRemoteJWKSet(new URL(address))

createServer(async (request, response) => {
  try {
    const [, token] = request.headers.authorization.split(' ')
    const { payload } = await jwtVerify(token, keys, { issuer, audience, typ: 'at+jwt', algorithms: [ALG] })
    response.end(JSON.stringify(payload))
  } catch (error) {
    response.writeHead(401).end(String(error))
  }
}).listen(new URL(ORIGIN).port, '127.0.0.1')
