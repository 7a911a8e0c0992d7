/** The path of each endpoint, under the API's path. */
export const ROUTES = {
  authorization: '/auth/authorize',
  token: '/auth/token',
  revocation: '/auth/revoke',
  introspection: '/auth/introspect',
  userinfo: '/auth/userinfo',
  jwks: '/auth/jwks',
  end_session: '/auth/session/end',
  device_authorization: '/auth/device_authorization',
  code_verification: '/auth/device',
  pushed_authorization_request: '/auth/par'
} as const
