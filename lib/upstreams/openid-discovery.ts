import type * as OpenidClient from 'openid-client'
import type { ClientAuth, Configuration } from 'openid-client'
import type { Upstream } from '../../schemas/upstream.ts'
import type { Clock } from '../clock.ts'
import type { Calls, CallProvider } from './calls.ts'
import { findIssuer, findServer } from './kinds.ts'
import type { Enter } from './places.ts'
import { readKey, readSecret, signAppleSecret, toWebKey } from './secret.ts'

/** Below this origin openid-client takes `{tenantid}` in an issuer as Microsoft means it. */
const MICROSOFT = 'https://login.microsoftonline.com'

interface DiscoveryParts {
  /** The library, which is loaded with the first upstream. */
  client: typeof OpenidClient
  upstream: Upstream
  calls: Calls
  now: Clock
}

/** How this service says who it is: by a secret, or by a signature. */
async function authenticate ({ client, upstream, now }: DiscoveryParts): Promise<ClientAuth> {
  const { kind, keyFile, keyId } = upstream
  if (keyFile === undefined) {
    const secret = await readSecret(upstream)
    // In the body, as each of the known providers takes it, unless the server says that it takes it in the header only.
    return (server, ...request) => {
      const methods = server.token_endpoint_auth_methods_supported ?? []
      const isHeader = methods.includes('client_secret_basic') && !methods.includes('client_secret_post')
      const apply = isHeader ? client.ClientSecretBasic(secret) : client.ClientSecretPost(secret)
      apply(server, ...request)
    }
  }
  const privateKey = await readKey(keyFile)
  if (kind === 'apple') return client.ClientSecretPost(signAppleSecret(privateKey, upstream, findServer(upstream), now()))
  const key = await toWebKey(privateKey)
  return client.PrivateKeyJwt(keyId === undefined ? key : { key, kid: keyId })
}

/** Creates the function that reads the metadata. Their issuer is the configured one; at Microsoft it may stand for any tenant. */
export function createDiscovery (parts: DiscoveryParts): (enter: Enter, pause?: number) => Promise<Configuration> {
  const { client, upstream, calls } = parts
  const server = findServer(upstream)
  const issuer = findIssuer(upstream)
  const isMicrosoft = upstream.kind === 'microsoft'
  const url = new URL(isMicrosoft ? issuer.replace(server, MICROSOFT) : issuer)

  return async function discover (enter, pause) {
    const read = calls.read(enter, undefined, pause)
    const fetch: CallProvider = async (url, init) => await read(isMicrosoft ? url.replace(MICROSOFT, server) : url, init)
    const config = await client.discovery(url, upstream.clientId, {}, await authenticate(parts), {
      [client.customFetch]: fetch,
      // Which hosts may be called without TLS is a matter of lib/outbound.
      execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks]
    })
    const { issuer: found } = config.serverMetadata()
    if (isMicrosoft && found !== issuer && found !== `${server}/{tenantid}/v2.0`) throw new Error('the metadata have another issuer')
    return config
  }
}
