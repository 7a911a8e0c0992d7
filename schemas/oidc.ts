import { Type, type Static } from '@sinclair/typebox'

const DAY = 24 * 60 * 60

/** A host as URLs have it, with its port if that is not 443. */
const DocumentHost = Type.String({ pattern: '^(localhost|[a-z0-9-]+(\\.[a-z0-9-]+)+)(:\\d{1,5})?$', maxLength: 253 })

const DOCUMENT_HOST = '`*`, a host such as agent.example or localhost:8443, or { host, redirects } with such hosts and schemes such as editor:'

const PageUrl = { pattern: '^https?://[^\\s"<>]+$', maxLength: 2048, expects: 'an http or https URL' } as const

/** The options of the authorization server. Defaults are defined here only. */
export const OidcOptionsSchema = Type.Object({
  documents: Type.Optional(Type.Object({
    hosts: Type.Union([Type.Literal('*'), Type.Array(Type.Union([Type.Literal('*'), DocumentHost, Type.Object({
      host: DocumentHost, redirects: Type.Array(Type.String({ pattern: `${DocumentHost.pattern}|^[a-z][a-z0-9+.-]*:$`, maxLength: 253 }), { maxItems: 20 })
    }, { additionalProperties: false })], { expects: DOCUMENT_HOST }), { minItems: 1, maxItems: 100 })], {
      expects: `\`*\`, or a list of 1 to 100 entries, each ${DOCUMENT_HOST}`
    })
  }, {
    additionalProperties: false,
    description: 'Accepts clients that nobody has registered, such as agents (MCP): their ids are the URLs of documents on these hosts, at port 443 unless the entry names another one, or with `*` at port 443 of any host. `redirects` names further hosts, and private schemes with a colon, to which those of a host may redirect. Absent: none. See docs/agents.md.'
  })),
  issuer: Type.Optional(Type.String({
    pattern: '^https?://[^/?#@\\s]+(/[^/?#\\s]+)*$',
    description: 'URL under which apps and browsers reach the service, with the prefix if there is one, without a trailing slash. Absent: the address it listens on.'
  })),
  name: Type.Optional(Type.String({
    minLength: 1, maxLength: 64, description: 'Name of the service on the pages. Absent: they show only the name of the app.'
  })),
  logo: Type.Optional(Type.String({
    minLength: 1, maxLength: 100_000, description: 'Logo on the pages: the path of a PNG, JPEG, GIF, WebP or SVG image, or a `data:` URL with base64; at most 64 KiB, because it is a part of every page. Read at the start.'
  })),
  logoDark: Type.Optional(Type.String({
    minLength: 1, maxLength: 100_000, description: 'Logo on pages with a dark background, as `logo` is given. It needs `logo`. Absent: the same one.'
  })),
  accent: Type.Optional(Type.String({
    pattern: '^#[0-9a-fA-F]{6}( #[0-9a-fA-F]{6})?$',
    description: 'Colour of the buttons on the pages, such as `#b3261e`, or two, for a light and a dark background: `#24508f #a9c5f2`. Each needs a contrast of 3 to its background.'
  })),
  helpAddress: Type.Optional(Type.String({
    pattern: '^(https?://[^\\s"<>]+|[^\\s@"<>:/?#&]+@[^\\s@"<>:/?#&]+)$',
    maxLength: 2048,
    expects: 'an email address, or an http or https URL',
    description: 'Where people get help, on the pages and in emails: an email address, or the URL of a page.'
  })),
  termsUrl: Type.Optional(Type.String({ ...PageUrl, description: 'URL of your terms of use, on the pages and in emails.' })),
  privacyUrl: Type.Optional(Type.String({ ...PageUrl, description: 'URL of your privacy notice, on the pages and in emails.' })),
  texts: Type.Optional(Type.String({
    minLength: 1, maxLength: 4096, description: 'Folder with texts of your own for pages and emails, a file for each language, such as `fr.json`. Read at the start.'
  })),
  accountPath: Type.Union([Type.Literal(false), Type.String({ pattern: '^(/[\\w.~-]+)+$' })], {
    default: '/account', description: 'Path of the pages where people see and change their own account, after the prefix. `false`: none but those of links, with the sign-in that a change of address needs.'
  }),
  accessTtl: Type.Integer({ minimum: 60, maximum: DAY, default: 3600, description: 'Lifetime of an access token in seconds.' }),
  refreshTtl: Type.Integer({ minimum: 60, maximum: 366 * DAY, default: 30 * DAY, description: 'Lifetime of a refresh token in seconds, from its last use.' }),
  sessionTtl: Type.Integer({
    minimum: 60, maximum: 366 * DAY, default: 14 * DAY, description: 'Seconds for which a browser stays signed in, from its last use.'
  }),
  sessionMax: Type.Integer({
    minimum: 60, maximum: 3660 * DAY, default: 90 * DAY, description: 'Seconds after which a browser asks for the password again, however often it is used.'
  }),
  refreshMax: Type.Integer({
    minimum: 60, maximum: 3660 * DAY, default: 365 * DAY, description: 'Seconds after which a token session can no longer be refreshed, however often it is used.'
  }),
  refreshGrace: Type.Integer({
    minimum: 0, maximum: 300, default: 10, description: 'Seconds during which a used refresh token is accepted again, for a lost response or two tabs at once.'
  }),
  signInLimit: Type.Union([Type.Literal(false), Type.Integer({ minimum: 1, maximum: 1_000_000 })], {
    default: 10, description: 'Sign-in attempts per minute from one address for one account. Ten times as many are allowed per address, uses of emailed links among them, and one address may start a hundred times as many sign-ins. An IPv6 /48 has ten times these limits. `false`: no limit.'
  })
}, { additionalProperties: false })

export type OidcOptions = Static<typeof OidcOptionsSchema>
