import { createHash } from 'node:crypto'

/**
 * The users, clients and tokens in every server. Each is derived from its number, so that no list of millions is needed. Texts
 * of a kind have the same length: the size of an answer does not vary.
 */

/** Tokens in rotation, and their users. */
export const TOKENS = 10_000
export const CLIENTS = 1_000

const SCOPES = ['openid', 'orders:read', 'profile']

function digest (kind: string, index: number): string {
  return createHash('sha256').update(`${kind} ${index}`).digest('base64url')
}

/** Ids are as long as the service's own, and not in the order of the numbers. */
function toId (kind: string, index: number): string {
  return (`01J8${digest(kind, index).replaceAll(/[-_]/g, '0').toUpperCase().slice(0, 22)}${String(index).padStart(8, '0')}`)
}

const pad = (index: number) => String(index).padStart(7, '0')

/** In the past, a millisecond apart. */
const timeAt = (index: number) => new Date(Date.UTC(2026, 0, 1) + index).toISOString()

export function tokenAt (index: number): string {
  return digest('token', index)
}

/** The id of the token session that the token belongs to. */
export function grantAt (index: number): string {
  return digest('grant', index)
}

export function userAt (index: number) {
  return {
    user_id: toId('user', index),
    account: `user${pad(index)}@example.com`,
    created_at: timeAt(index),
    name: `User ${pad(index)}`,
    // The first user is the admin.
    roles: { [index === 0 ? 'admin' : 'staff']: true } as Record<string, true>,
    info: { locale: 'en-GB', team: `team-${index % 10}` }
  }
}

export function clientAt (index: number) {
  return {
    clientId: toId('client', index),
    createdAt: timeAt(index),
    redirectUris: [`https://app${pad(index)}.example.com/callback`, `https://app${pad(index)}.example.com/silent`],
    scopes: SCOPES,
    name: `Application ${pad(index)}`,
    /** Every second client is confidential, every fourth has an image. */
    secret: index % 2 === 0 ? digest('secret', index).replaceAll(/[-_]/g, '0').slice(0, 16) : undefined,
    image: index % 4 === 0 ? `https://app${pad(index)}.example.com/logo.png` : undefined,
    /** Every confidential client may also act for itself. */
    grants: index % 2 === 0 ? ['client', 'code', 'refresh'] as const : undefined,
    /** The first signs users in without asking for consent. */
    first_party: index === 0 ? true : undefined
  }
}

/** The answer of tokeninfo. */
export function tokenInfoAt (index: number, users = TOKENS, clients = CLIENTS) {
  const { user_id, account, name, roles } = userAt(index % users)
  const { clientId, scopes } = clientAt(index % clients)
  return { user_id, account, name, roles, client_id: clientId, scopes }
}

/** A client as an admin sees it in a list. */
export function listedClientAt (index: number, users: number) {
  const { secret, createdAt, redirectUris, scopes, name, image, clientId, grants, first_party } = clientAt(index)
  return {
    clientId,
    createdAt,
    modifiedAt: createdAt,
    ...(secret !== undefined && { clientSecret: secret }),
    redirectUris,
    scopes,
    userId: userAt(index % users).user_id,
    name,
    ...(image !== undefined && { image }),
    ...(grants !== undefined && { grants }),
    ...(first_party !== undefined && { first_party })
  }
}

export function range<T> (length: number, at: (index: number) => T): T[] {
  return Array.from({ length }, (_, index) => at(index))
}
