import type { CollectionSpec } from './port.ts'

const TOKEN_KEYS = { user_id: 'string', client_id: 'string', grant_id: 'string', registry_id: 'string', consumed: 'boolean', expired_at: 'string' } as const

/** The prefix of the names of fields that hold events until the relay has published them (lib/events). */
export const EVENT_PREFIX = 'event'

/** The key by which the relay finds the documents that carry events. */
const EVENTS_DUE = { event_due: 'string' } as const

/** What every kind of work is read by (lib/work). */
const WORK_KEYS = {
  state: 'string', due_at: 'string', set_at: 'string', leased: 'boolean', claim: 'number', created_at: 'string', expired_at: 'string'
} as const
const WORK_INDEXES = [['state', 'due_at'], ['state', 'set_at'], ['state', 'leased']]

/** A part of a person's own data (lib/export/own-data.ts). */
export type OwnPart =
  | 'profile' | 'addresses' | 'ways' | 'identities' | 'browsers' | 'apps' | 'tokens' | 'clients' | 'links' | 'events' | 'client_events'

/** The parts of a person's own data that a collection is in, or why it is in none. */
type Own = readonly OwnPart[] | { leftOut: string }

const MINUTES = { leftOut: 'A step of a sign-in in progress, deleted within minutes.' }
const NOBODY = { leftOut: 'Names nobody.' }

/** All collections of the service. Times are ISO 8601 strings; a token's id is the SHA-256 of the token, base64url. */
export const COLLECTIONS: readonly (CollectionSpec & { own: Own })[] = [
  {
    name: 'users',
    own: ['profile', 'addresses', 'ways'],
    keys: {
      account: 'string',
      created_at: 'string',
      modified_at: 'string',
      verified_at: 'string',
      name: 'string',
      email: 'string',
      revision: 'number',
      bootstrap: 'string',
      administers: 'boolean',
      has_factor: 'boolean',
      upstreams: 'string',
      roles_at: 'string',
      password_scheme: 'string',
      imported_source: 'string',
      imported_run: 'string',
      ...EVENTS_DUE
    },
    hidden: EVENT_PREFIX,
    unique: ['account', 'bootstrap'],
    uniqueItems: ['addresses', 'way_keys', 'external_keys'],
    search: { field: 'words', order: 'account' },
    indexes: [
      ['created_at'], ['modified_at'], ['verified_at'], ['name'], ['email'], ['administers'], ['has_factor'], ['upstreams'], ['roles_at'],
      ['password_scheme'], ['imported_source'], ['imported_run'], ['event_due']
    ]
  },
  // The material of ways (lib/ways). Look-ups of tokens never read it.
  { name: 'credentials', own: ['ways', 'identities'], keys: { user_id: 'string', revision: 'number' }, indexes: [['user_id']], hidden: '' },
  {
    name: 'clients',
    own: ['clients'],
    keys: {
      userId: 'string',
      createdAt: 'string',
      modifiedAt: 'string',
      name: 'string',
      backchannel: 'boolean',
      reserved: 'boolean',
      revision: 'number',
      ...EVENTS_DUE
    },
    hidden: EVENT_PREFIX,
    search: { field: 'words', order: 'name' },
    indexes: [
      ['name'], ['createdAt'], ['modifiedAt'], ['backchannel'], ['reserved'], ['event_due'],
      ['userId', 'name'], ['userId', 'createdAt'], ['userId', 'modifiedAt']
    ]
  },
  // Last uses of clients' secrets, keys and service tokens, and of personal access tokens: lib/tokens/uses.ts. The id is the client's, or the holder of a user's tokens.
  { name: 'client_uses', own: ['tokens'], keys: {}, hidden: '' },
  // Copies of the images of clients that the operator vouches for: lib/clients/logos.ts. The id is the client's.
  { name: 'client_logos', own: NOBODY, keys: { revision: 'number' }, hidden: '' },
  // Secrets and service tokens of clients, and personal access tokens, that expire: lib/clients/secret-ends.ts. The id is theirs.
  {
    name: 'secret_ends',
    own: { leftOut: 'When secrets and tokens expire. The clients and the tokens are in.' },
    keys: { ...WORK_KEYS, until: 'string' },
    indexes: [...WORK_INDEXES, ['until']],
    expiry: 'expired_at'
  },
  // One document: lib/resources/registry.ts.
  {
    name: 'resources',
    own: { leftOut: 'Describes APIs, and names nobody.' },
    keys: { revision: 'number', ...EVENTS_DUE },
    indexes: [['event_due']],
    hidden: EVENT_PREFIX
  },
  ...Object.entries({
    authorization_codes: MINUTES,
    access_tokens: ['tokens' as const],
    refresh_tokens: { leftOut: 'Each belongs to a token session, and these are in.' }
  }).map(([name, own]) => ({
    name,
    own,
    keys: name === 'access_tokens' ? { ...TOKEN_KEYS, holder: 'string' as const } : TOKEN_KEYS,
    indexes: [['user_id'], ['client_id'], ['grant_id'], ...(name === 'access_tokens' ? [['holder']] : [])],
    expiry: 'expired_at'
  })),
  {
    name: 'grants',
    own: ['apps'],
    keys: { ...TOKEN_KEYS, session_uid: 'string', upstream_sid: 'string', generation: 'number' },
    indexes: [['user_id'], ['client_id'], ['session_uid'], ['upstream_sid']],
    expiry: 'expired_at'
  },
  // Documents of clients that nobody has registered (lib/client-documents). The id is the SHA-256 of the URL.
  { name: 'documents', own: { leftOut: 'Describes apps, and names nobody.' }, keys: { revision: 'number', expired_at: 'string' }, expiry: 'expired_at' },
  // The authorization server (lib/oidc): sign-in sessions of browsers, device codes, and requests in progress.
  {
    name: 'sign_in_sessions',
    own: ['browsers'],
    keys: { user_id: 'string', uid: 'string', upstream_sid: 'string', expired_at: 'string' },
    indexes: [['user_id'], ['uid'], ['upstream_sid']],
    expiry: 'expired_at'
  },
  {
    name: 'device_codes',
    own: MINUTES,
    keys: { ...TOKEN_KEYS, user_code: 'string', decided: 'boolean', polled_at: 'string', revision: 'number' },
    unique: ['user_code'],
    indexes: [['user_id'], ['client_id'], ['grant_id']],
    expiry: 'expired_at'
  },
  { name: 'interactions', own: MINUTES, keys: { consumed: 'boolean', revision: 'number', expired_at: 'string' }, expiry: 'expired_at' },
  ...['pushed_requests', 'proofs'].map((name) => ({
    name, own: MINUTES, keys: { consumed: 'boolean', expired_at: 'string' } as const, expiry: 'expired_at'
  })),
  // Sign-ins between two steps: lib/sign-in/sign-ins.ts.
  { name: 'sign_ins', own: MINUTES, keys: { revision: 'number', expired_at: 'string' }, expiry: 'expired_at' },
  // Forms that were sent: lib/sent-forms/sent-forms.ts. The id is a hash of the form and of its browser's secret.
  {
    name: 'sent_forms',
    own: { leftOut: 'Hashes of forms that were sent, kept for a day. They name nobody.' },
    keys: { done: 'boolean', expired_at: 'string' },
    expiry: 'expired_at'
  },
  // What the logout tokens of other providers have ended: lib/upstreams/ends.ts. The id is a keyless hash of the `jti`.
  {
    name: 'upstream_ends',
    own: { leftOut: 'Notices of other providers that sign-ins have ended, kept for a day. The events tell of them.' },
    keys: { sid: 'string', identity: 'string', claimed_until: 'string', created_at: 'string', expired_at: 'string' },
    indexes: [['sid'], ['identity', 'created_at']],
    expiry: 'expired_at'
  },
  // Failed attempts at passwords: lib/throttling/attempts.ts. The id is a keyed hash.
  {
    name: 'attempts',
    own: { leftOut: 'Counts of wrong passwords and codes, under keyed hashes. The events tell of them.' },
    keys: { series: 'string', revision: 'number', expired_at: 'string' },
    expiry: 'expired_at'
  },
  // Links that were mailed or shown, by the SHA-256 of their token (lib/accounts/tickets.ts).
  {
    name: 'tickets',
    own: ['links'],
    keys: { purpose: 'string', holder: 'string', created_at: 'string', expired_at: 'string' },
    indexes: [['holder', 'created_at']],
    expiry: 'expired_at'
  },
  // The outbox of mails (lib/mail/outbox.ts).
  {
    name: 'deliveries',
    own: { leftOut: 'Emails on their way, sealed. The links in them are among the links.' },
    keys: { ...WORK_KEYS, sharer: 'string', user_id: 'string' },
    indexes: [...WORK_INDEXES, ['state', 'created_at'], ['sharer', 'state'], ['user_id', 'state', 'created_at']],
    expiry: 'expired_at'
  },
  // The outbox of logout tokens (lib/logout/logouts.ts). The id is a hash of what ended, and of the client.
  {
    name: 'logouts',
    own: { leftOut: 'Notices to apps about sessions that have ended, kept for hours. The events tell of them.' },
    keys: { ...WORK_KEYS, client_id: 'string', owner: 'string' },
    indexes: [...WORK_INDEXES, ['state', 'created_at'], ['client_id', 'state'], ['owner', 'state']],
    expiry: 'expired_at'
  },
  // Webhooks, each with its position in the feed, their failed events and their last attempts (lib/webhooks).
  {
    name: 'webhooks',
    own: { leftOut: 'Belongs to the operator, and names nobody.' },
    keys: { slot: 'number', state: 'string', claim: 'number', revision: 'number', ...EVENTS_DUE },
    unique: ['slot'],
    indexes: [['state'], ['event_due']],
    hidden: EVENT_PREFIX
  },
  {
    name: 'webhook_failures',
    own: { leftOut: 'Numbers of events that are sent again. The events themselves are in.' },
    keys: { ...WORK_KEYS, webhook_id: 'string' },
    indexes: [...WORK_INDEXES, ['webhook_id', 'state', 'due_at'], ['webhook_id', 'state', 'set_at'], ['webhook_id', 'state']],
    expiry: 'expired_at'
  },
  {
    name: 'webhook_attempts',
    own: { leftOut: 'Numbers of events that were sent. The events themselves are in.' },
    keys: { expired_at: 'string' },
    expiry: 'expired_at'
  },
  // Events (lib/events): the feed in its order, the inbox of the relay, and the state of the feed.
  {
    name: 'events',
    own: ['events', 'client_events'],
    keys: { key: 'string', once: 'string', type: 'string', user: 'string', client: 'string', owner: 'string', reason: 'string', expired_at: 'string' },
    unique: ['key', 'once'],
    indexes: [['type', 'key'], ['user', 'key'], ['user', 'type', 'key'], ['client', 'key'], ['owner', 'key'], ['reason', 'key']],
    expiry: 'expired_at',
    hidden: ''
  },
  { name: 'event_inbox', own: { leftOut: 'Events that are among the events within moments.' }, keys: EVENTS_DUE, indexes: [['event_due']], hidden: '' },
  // Events that could not be published: lib/events/letters.ts.
  {
    name: 'event_letters',
    own: { leftOut: 'Events that could not be published yet. They are among the events afterwards.' },
    keys: { ...EVENTS_DUE, due_at: 'string' },
    indexes: [['due_at']],
    hidden: ''
  },
  { name: 'feed', own: NOBODY, keys: { claim: 'number' }, hidden: '' },
  // Names of people who were deleted: lib/users/former-names.ts. The id is a keyed hash.
  { name: 'former_names', own: { leftOut: 'Keyed hashes of the names of people who were deleted.' }, keys: { expired_at: 'string' }, expiry: 'expired_at' },
  // People whom an import has brought in, and who were deleted: lib/users/former-imports.ts. The id is a keyed hash.
  {
    name: 'former_imports',
    own: { leftOut: 'Keyed hashes of the names and ids of imported people who were deleted.' },
    keys: { expired_at: 'string' },
    expiry: 'expired_at'
  },
  { name: 'keys', own: NOBODY, keys: { revision: 'number' } },
  { name: 'meta', own: NOBODY, keys: { revision: 'number' } }
]
