import type { CollectionSpec } from './port.ts'

const TOKEN_KEYS = { user_id: 'string', client_id: 'string', grant_id: 'string', registry_id: 'string', consumed: 'boolean', expired_at: 'string' } as const

/** The prefix of the names of fields that hold events until the relay has published them (lib/events). */
export const EVENT_PREFIX = 'event'

/** The key by which the relay finds the documents that carry events. */
const EVENTS_DUE = { event_due: 'string' } as const

/** All collections of the service. Times are ISO 8601 strings; a token's id is the SHA-256 of the token, base64url. */
export const COLLECTIONS: readonly CollectionSpec[] = [
  {
    name: 'users',
    keys: {
      account: 'string',
      created_at: 'string',
      modified_at: 'string',
      verified_at: 'string',
      name: 'string',
      revision: 'number',
      bootstrap: 'string',
      administers: 'boolean',
      has_factor: 'boolean',
      ...EVENTS_DUE
    },
    hidden: EVENT_PREFIX,
    unique: ['account', 'bootstrap'],
    uniqueItems: ['addresses', 'way_keys'],
    indexes: [['created_at'], ['modified_at'], ['verified_at'], ['name'], ['administers'], ['has_factor'], ['event_due']]
  },
  // The material of ways (lib/ways). Look-ups of tokens never read it.
  { name: 'credentials', keys: { user_id: 'string', revision: 'number' }, indexes: [['user_id']], hidden: '' },
  {
    name: 'clients',
    keys: { userId: 'string', createdAt: 'string', modifiedAt: 'string', name: 'string', backchannel: 'boolean', revision: 'number', ...EVENTS_DUE },
    hidden: EVENT_PREFIX,
    indexes: [
      ['name'], ['createdAt'], ['modifiedAt'], ['backchannel'], ['event_due'],
      ['userId', 'name'], ['userId', 'createdAt'], ['userId', 'modifiedAt']
    ]
  },
  // One document: lib/resources/registry.ts.
  { name: 'resources', keys: { revision: 'number', ...EVENTS_DUE }, indexes: [['event_due']], hidden: EVENT_PREFIX },
  ...['authorization_codes', 'access_tokens', 'refresh_tokens'].map((name) => ({
    name, keys: TOKEN_KEYS, indexes: [['user_id'], ['client_id'], ['grant_id']], expiry: 'expired_at'
  })),
  {
    name: 'grants',
    keys: { ...TOKEN_KEYS, session_uid: 'string', generation: 'number' },
    indexes: [['user_id'], ['client_id'], ['session_uid']],
    expiry: 'expired_at'
  },
  // The authorization server (lib/oidc): sign-in sessions of browsers, device codes, and requests in progress.
  { name: 'sign_in_sessions', keys: { user_id: 'string', uid: 'string', expired_at: 'string' }, indexes: [['user_id'], ['uid']], expiry: 'expired_at' },
  {
    name: 'device_codes',
    keys: { ...TOKEN_KEYS, user_code: 'string', decided: 'boolean', polled_at: 'string', revision: 'number' },
    unique: ['user_code'],
    indexes: [['user_id'], ['client_id'], ['grant_id']],
    expiry: 'expired_at'
  },
  { name: 'interactions', keys: { consumed: 'boolean', revision: 'number', expired_at: 'string' }, expiry: 'expired_at' },
  ...['pushed_requests', 'proofs'].map((name) => ({
    name, keys: { consumed: 'boolean', expired_at: 'string' } as const, expiry: 'expired_at'
  })),
  // Sign-ins between two steps: lib/sign-in/sign-ins.ts.
  { name: 'sign_ins', keys: { expired_at: 'string' }, expiry: 'expired_at' },
  // Failed attempts at passwords: lib/throttling/attempts.ts. The id is a keyed hash.
  { name: 'attempts', keys: { series: 'string', revision: 'number', expired_at: 'string' }, expiry: 'expired_at' },
  // Links that were mailed or shown, by the SHA-256 of their token (lib/accounts/tickets.ts).
  {
    name: 'tickets',
    keys: { purpose: 'string', holder: 'string', created_at: 'string', expired_at: 'string' },
    indexes: [['holder', 'created_at']],
    expiry: 'expired_at'
  },
  // The outbox of mails (lib/mail/outbox.ts).
  {
    name: 'deliveries',
    keys: { state: 'string', due_at: 'string', claim: 'number', expired_at: 'string' },
    indexes: [['state', 'due_at']],
    expiry: 'expired_at'
  },
  // The outbox of logout tokens (lib/logout/logouts.ts). The id is a hash of what ended, and of the client.
  {
    name: 'logouts',
    keys: { state: 'string', due_at: 'string', claim: 'number', client_id: 'string', owner: 'string', expired_at: 'string' },
    indexes: [['state', 'due_at'], ['client_id', 'state'], ['owner', 'state']],
    expiry: 'expired_at'
  },
  // Webhooks, each with its position in the feed, their failed events and their last attempts (lib/webhooks).
  {
    name: 'webhooks',
    keys: { slot: 'number', state: 'string', claim: 'number', revision: 'number', ...EVENTS_DUE },
    unique: ['slot'],
    indexes: [['state'], ['event_due']],
    hidden: EVENT_PREFIX
  },
  {
    name: 'webhook_failures',
    keys: { webhook_id: 'string', state: 'string', due_at: 'string', claim: 'number', expired_at: 'string' },
    indexes: [['state', 'due_at'], ['webhook_id', 'state', 'due_at'], ['webhook_id', 'state']],
    expiry: 'expired_at'
  },
  { name: 'webhook_attempts', keys: { expired_at: 'string' }, expiry: 'expired_at' },
  // Events (lib/events): the feed in its order, the inbox of the relay, and the state of the feed.
  {
    name: 'events',
    keys: { key: 'string', once: 'string', type: 'string', user: 'string', client: 'string', owner: 'string', expired_at: 'string' },
    unique: ['key', 'once'],
    indexes: [['type', 'key'], ['user', 'key'], ['client', 'key'], ['owner', 'key']],
    expiry: 'expired_at',
    hidden: ''
  },
  { name: 'event_inbox', keys: EVENTS_DUE, indexes: [['event_due']], hidden: '' },
  // Events that could not be published: lib/events/letters.ts.
  { name: 'event_letters', keys: { ...EVENTS_DUE, due_at: 'string' }, indexes: [['due_at']], hidden: '' },
  { name: 'feed', keys: { claim: 'number' }, hidden: '' },
  { name: 'keys', keys: { revision: 'number' } },
  { name: 'meta', keys: { revision: 'number' } }
]
