import type { AuthorizationServer, Oidc } from '../lib/oidc/index.ts'
import type { Look } from '../lib/pages/look.ts'
import type { SignInLimits } from './sign-in-limit.ts'

/** Resolves to the authorization server with the current keys. */
export type GetServer = () => Promise<AuthorizationServer>

/** What the endpoints and pages of the authorization server are mounted with. */
export interface OidcMount {
  getServer: GetServer
  getIssuer: () => URL
  introspect: ReturnType<Oidc['createIntrospection']>
  limits: SignInLimits
  look: Look
}
