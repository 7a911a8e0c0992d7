import { type CollectionSpec } from './port.ts'

/** What the service keeps. Times are ISO strings; a token's id is the SHA-256 of the token, base64url. */
export const COLLECTIONS = [
  {
    name: 'users',
    keys: {
      account: 'string',
      created_at: 'string',
      modified_at: 'string',
      verified_at: 'string',
      name: 'string',
      revision: 'number',
      bootstrap: 'string'
    },
    unique: ['account', 'bootstrap'],
    indexes: [['created_at'], ['modified_at'], ['verified_at'], ['name']]
  },
  {
    name: 'clients',
    keys: { userId: 'string', createdAt: 'string', modifiedAt: 'string', name: 'string' },
    indexes: [
      ['name'], ['createdAt'], ['modifiedAt'],
      ['userId', 'name'], ['userId', 'createdAt'], ['userId', 'modifiedAt']
    ]
  },
  ...['authorization_codes', 'access_tokens', 'refresh_tokens', 'grants'].map((name) => ({
    name,
    keys: { user_id: 'string', client_id: 'string', grant_id: 'string', refresh_id: 'string', expired_at: 'string' } as const,
    indexes: [['user_id'], ['client_id'], ['grant_id']],
    expiry: 'expired_at'
  })),
  { name: 'meta', keys: {} }
] as const satisfies CollectionSpec[]
