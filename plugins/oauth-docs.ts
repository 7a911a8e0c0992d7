import { Type, type TSchema } from '@sinclair/typebox'
import type { FastifySchema } from 'fastify'
import { defined } from '../lib/defined.ts'
import { ROUTES } from '../lib/oidc/routes.ts'

/** RFC 6749, 5.2. */
const OAuthErrorSchema = Type.Object({ error: Type.String(), error_description: Type.Optional(Type.String()) }, { title: 'OAuthError' })

const text = (description: string) => Type.String({ description })
const optional = (description: string) => Type.Optional(text(description))
const RetryAfter = Type.Integer({ minimum: 0, description: 'Seconds to wait.' })
const Challenge = text('What credentials are needed (RFC 9110, 11.6.1).')

const fail = (description: string, headers?: Record<string, TSchema>) => defined({ ...OAuthErrorSchema, description, headers })
const ERRORS = {
  400: fail('invalid_request, invalid_grant, invalid_scope or another error of the request.'),
  401: fail('invalid_client: the client is unknown, or its secret is wrong.', { 'WWW-Authenticate': Challenge }),
  429: fail('temporarily_unavailable: too many requests.', { 'Retry-After': RetryAfter }),
  500: fail('server_error.'),
  503: fail('temporarily_unavailable: the store failed, or a queue is full.', { 'Retry-After': RetryAfter })
}

const describe = (schema: TSchema, description: string) => ({ ...schema, description })
const none = (description: string, headers?: Record<string, TSchema>) => defined({ type: 'null', description, headers })
const page = (description: string) => ({ description, content: { 'text/html': { schema: Type.String() } } })
const BY_CLIENT = [{ client: [] }, {}]

/** @param standard where the endpoint is defined */
function operation (operationId: string, summary: string, standard: string, rest: object): FastifySchema {
  return { operationId, summary, description: `Defined in ${standard}.`, tags: ['oauth'], ...rest }
}

/** An endpoint that clients post a form to. */
function form (operationId: string, summary: string, standard: string, fields: Record<string, TSchema>, example: object, response: object): FastifySchema {
  const body = Type.Object({ client_id: optional('Of a public client.'), ...fields }, { examples: [example] })
  return operation(operationId, summary, standard, {
    body, consumes: ['application/x-www-form-urlencoded'], security: BY_CLIENT, response: { ...response, ...ERRORS }
  })
}

const AUTHORIZATION = {
  response_type: Type.Literal('code'),
  client_id: text('The client.'),
  redirect_uri: text('One of the redirect URIs of the client.'),
  scope: optional('Separated by spaces.'),
  state: optional('Returned unchanged.'),
  nonce: optional('Returned in the ID token.'),
  code_challenge: optional('Required unless the client is exempt (RFC 7636).'),
  code_challenge_method: Type.Optional(Type.Literal('S256')),
  resource: optional('What the tokens are for (RFC 8707).'),
  prompt: optional('none, login or consent.'),
  login_hint: optional('The account to sign in.'),
  request: optional('All parameters in a JWT that a client with keys has signed (RFC 9101). Then only client_id is read beside it.')
}
const REQUEST = {
  response_type: 'code',
  client_id: '01JD6YK6M0Q2S4V6X8Z0A1B2C3abcdefgh',
  redirect_uri: 'https://app.example/callback',
  scope: 'openid',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256'
}
const ANSWERS = {
  200: page('With response_mode=form_post, a page that posts the code to the app.'),
  303: none('Redirects to the sign-in page, or with the code to the app.', { Location: Type.String() })
}
const FORM_ANSWERS = {
  303: none('Redirects to the GET with the same parameters, which answers with a page or sends the browser on.', { Location: Type.String() }),
  400: page('The form is not UTF-8.'),
  413: page('The form is too large.'),
  415: page('The body is not a form.'),
  default: page('A page that says what is wrong.')
}
/** An error: a page for browsers, or JSON where Accept prefers it. */
const failure = (description: string, headers?: Record<string, TSchema>) => defined({
  description, content: { 'text/html': { schema: Type.String() }, 'application/json': { schema: OAuthErrorSchema } }, headers
})
const PAGE_ERRORS = {
  400: failure('Says what is wrong.'),
  429: failure('Too many sign-ins were started.', { 'Retry-After': RetryAfter }),
  500: failure('An unexpected error.'),
  503: failure('The store failed.', { 'Retry-After': RetryAfter })
}
const FORM = { consumes: ['application/x-www-form-urlencoded'] }

const TokensSchema = Type.Object({
  access_token: Type.String(),
  token_type: Type.String(),
  expires_in: Type.Integer({ description: 'Seconds.' }),
  scope: Type.Optional(Type.String()),
  refresh_token: Type.Optional(Type.String()),
  id_token: Type.Optional(Type.String())
}, { title: 'Tokens' })

const END_SESSION = {
  id_token_hint: optional('An ID token of the session.'),
  client_id: optional('The client.'),
  post_logout_redirect_uri: optional('Where to go afterwards.'),
  state: optional('Returned unchanged.')
}

const USERINFO = {
  security: [{ bearer: [] }, { oauth2: ['openid'] }],
  response: {
    200: describe(Type.Object({ sub: Type.String() }, { additionalProperties: true, title: 'UserInfo' }), 'The claims that the token may read.'),
    ...ERRORS,
    401: fail('invalid_token.', { 'WWW-Authenticate': Challenge }),
    403: fail('insufficient_scope: the token lacks openid.', { 'WWW-Authenticate': Challenge })
  }
}

const MetadataSchema = Type.Object({ issuer: Type.String() }, { additionalProperties: true, title: 'ServerMetadata' })

const DISCOVERY = { response: { 200: describe(MetadataSchema, 'The metadata.') } }

const KeysSchema = Type.Object({ keys: Type.Array(Type.Object({}, { additionalProperties: true })) })

/** What a client asks about a token. */
const TOKEN = { token: text('An access or a refresh token.'), token_type_hint: optional('access_token or refresh_token.') }

const PushedSchema = Type.Object({ request_uri: Type.String(), expires_in: Type.Integer() }, { title: 'PushedRequest' })

/** oidc-provider's endpoints, by path and method. */
const DOCS: Record<string, Record<string, FastifySchema>> = {
  [ROUTES.authorization]: {
    GET: operation('authorize', 'Begin a sign-in in a browser', 'RFC 6749, 4.1.1', {
      querystring: Type.Object(AUTHORIZATION), response: { ...ANSWERS, ...PAGE_ERRORS }
    }),
    POST: operation('authorizeByForm', 'Begin a sign-in by a form', 'OpenID Connect Core, 3.1.2.1', {
      body: Type.Object(AUTHORIZATION, { examples: [REQUEST] }), ...FORM, response: FORM_ANSWERS
    })
  },
  [ROUTES.token]: {
    POST: form('requestToken', 'Get tokens', 'RFC 6749, 3.2', {
      grant_type: text('authorization_code, refresh_token, client_credentials or urn:ietf:params:oauth:grant-type:device_code.'),
      code: optional('Of the authorization.'),
      redirect_uri: optional('The same as in the authorization request.'),
      code_verifier: optional('Of the code challenge (RFC 7636).'),
      refresh_token: optional('Of the token session.'),
      device_code: optional('Of the device authorization.'),
      scope: optional('Separated by spaces.'),
      resource: optional('What the token is for (RFC 8707).')
    }, { grant_type: 'client_credentials', scope: 'clients:read' }, { 200: describe(TokensSchema, 'The tokens.') })
  },
  [ROUTES.revocation]: {
    POST: form('revokeToken', 'End a token session', 'RFC 7009', TOKEN,
      { token: 'an-access-or-refresh-token' }, { 200: none('The token is no longer valid.') })
  },
  [ROUTES.introspection]: {
    POST: form('introspectToken', 'Ask whether a token is valid', 'RFC 7662', TOKEN,
      { token: 'an-access-token' },
      { 200: describe(Type.Object({ active: Type.Boolean() }, { additionalProperties: true, title: 'Introspection' }), 'Its state, and what it is for.') })
  },
  [ROUTES.userinfo]: {
    GET: operation('getUserInfo', 'Read the claims about the user', 'OpenID Connect Core, 5.3', USERINFO),
    POST: operation('postUserInfo', 'Read the claims about the user by POST', 'OpenID Connect Core, 5.3', USERINFO)
  },
  [ROUTES.jwks]: {
    GET: operation('getKeys', 'Read the public keys of ID tokens', 'RFC 7517', {
      response: { 200: { description: 'The keys.', content: { 'application/jwk-set+json': { schema: KeysSchema } } } }
    })
  },
  [ROUTES.end_session]: {
    GET: operation('endSession', 'Sign the user out of the browser', 'RP-Initiated Logout, 2', {
      querystring: Type.Object(END_SESSION), response: { 200: page('Asks whether to sign out.'), ...PAGE_ERRORS }
    }),
    POST: operation('endSessionByForm', 'Sign the user out by a form', 'RP-Initiated Logout, 2', {
      body: Type.Object(END_SESSION, { examples: [{ client_id: REQUEST.client_id }] }), ...FORM, response: FORM_ANSWERS
    })
  },
  [ROUTES.device_authorization]: {
    POST: form('authorizeDevice', 'Begin a sign-in on a device without a browser', 'RFC 8628',
      { scope: optional('Separated by spaces.'), resource: optional('What the tokens are for (RFC 8707).') },
      { client_id: REQUEST.client_id, scope: 'openid' },
      {
        200: describe(Type.Object({
          device_code: Type.String(),
          user_code: Type.String(),
          verification_uri: Type.String(),
          verification_uri_complete: Type.Optional(Type.String()),
          expires_in: Type.Integer(),
          interval: Type.Optional(Type.Integer())
        }, { title: 'DeviceAuthorization' }), 'What the device shows, and what it asks the token endpoint with.')
      })
  },
  [ROUTES.pushed_authorization_request]: {
    POST: form('pushAuthorization', 'Push an authorization request', 'RFC 9126', AUTHORIZATION, REQUEST,
      { 201: describe(PushedSchema, 'What the browser takes to the authorization endpoint.') })
  }
}

const WELL_KNOWN: Record<string, FastifySchema> = {
  '/.well-known/openid-configuration': operation('getOpenIdConfiguration', 'Read the metadata of the server', 'OpenID Connect Discovery', DISCOVERY),
  '/.well-known/oauth-authorization-server': operation('getServerMetadata', 'Read the metadata of the server', 'RFC 8414', DISCOVERY)
}

/** The description of one of oidc-provider's endpoints; undefined for its pages, and for other routes. */
export function findOAuthDocs (method: string, url: string): FastifySchema | undefined {
  const path = /\/api\/v1(\/auth\/.*)$/.exec(url)?.[1]
  if (path !== undefined) return DOCS[path]?.[method]
  return method === 'GET' ? WELL_KNOWN[url.slice(url.lastIndexOf('/.well-known/'))] : undefined
}
