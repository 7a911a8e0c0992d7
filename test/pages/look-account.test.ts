import t from 'tap'
import { toQrCode } from '../../lib/qr.ts'
import { skip } from './chromium.ts'
import { LONG, type Row, action, checkLook, client, shared } from './look.ts'

t.setTimeout(600_000)

const view = { base: '/account', sections: ['profile', 'methods', 'email', 'sessions', 'apps', 'tokens', 'activity', 'clients', 'data', 'delete'], account: 'ann@example.com', xsrf: 'x' } as const
const longView = { ...view, account: `${LONG.toLowerCase()}@example.com` }
const since = '2026-11-20T09:30:00.000Z'
const last_used_at = '2026-11-22T02:51:00.000Z'
const place = { browser: 'Firefox', system: 'Linux', address: '203.0.113.7' }
const scopes = [{ scope: 'openid' }, { scope: 'orders:read', meaning: 'read your orders' }, { scope: 'clients:write' }]

/** Every page of the account, in each state that looks different. */
const seed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const uri = `otpauth://totp/Northwind:ann@example.com?secret=${seed}`
const codes = Array.from({ length: 10 }, (_, index) => `${index}abc-defg-hjkm-npqr-stvw-xyz0`)
const qr = await toQrCode(uri)

const proving = { mode: 'get', options: {} } as const

const ROWS: Row[] = [
  ['account-methods', 'account-methods', {
    ...view,
    section: 'methods',
    done: 'factor',
    codes: 9,
    mayAdd: true,
    mayAddPasskey: true,
    passkeys: [{ id: 'd', name: 'Laptop', at: since, last_used_at, place }, { id: 'e', at: since, foreign: true }],
    apps: [{ id: 'a', name: 'Phone', at: since, last_used_at }, { id: 'b', name: LONG, at: since }, { id: 'c', at: since }],
    identities: [{ id: 'a', name: 'Google', at: since, last_used_at }, { id: 'b', name: LONG, at: since, off: true }],
    upstreams: [{ id: 'a', name: 'Google' }, { id: 'b', name: LONG }]
  }, 'Northwind ID'],
  ['account-methods-none', 'account-methods', { ...view, section: 'methods', apps: [], passkeys: [], mayAdd: true, mayAddPasskey: true, identities: [], upstreams: [{ id: 'a', name: 'Google' }] }, 'Northwind ID'],
  ['account-methods-few', 'account-methods', {
    ...longView, section: 'methods', noPassword: true, codes: 0, apps: [], passkeys: [{ id: 'd', at: since }], mayAdd: false, mayAddPasskey: false, upstreams: [], error: ({ account }) => account.restricted
  }],
  ['account-app-add', 'account-app-add', { ...view, section: 'methods', needsCode: true, passkey: proving, name: LONG, error: ({ errors }) => errors.wrongCode }, 'Northwind ID'],
  ['account-factor', 'account-factor', { ...view, section: 'methods', id: 'a', kind: 'passkey', name: LONG, at: since, last_used_at, place, foreign: true }, 'Northwind ID'],
  ['account-factor-nameless', 'account-factor', { ...view, section: 'methods', id: 'a', kind: 'totp', at: since }],
  ['code-used', 'code-used', { left: 7, to: '/account' }, 'Northwind ID'],
  ['code-used-app', 'code-used', { left: 1, action, client }],
  ['code-used-last', 'code-used', { left: 0, action, client: { name: LONG } }],
  ['account-identity-add', 'account-identity-add', { ...view, section: 'methods', needsCode: true, id: 'a', name: LONG }],
  ['account-identity-remove', 'account-identity-remove', { ...view, section: 'methods', needsCode: true, id: 'a', name: LONG, error: ({ account }) => account.lastIdentity }],
  ['account-identity-remove-alone', 'account-identity-remove', { ...view, section: 'methods', noPassword: true, id: 'a', name: 'Google' }],
  ['account-passkey-remove', 'account-factor-remove', { ...view, section: 'methods', needsCode: true, id: 'a', kind: 'passkey', isLast: false, passkey: proving, error: ({ errors }) => errors.passkeyUnverified }],
  ['account-passkey-add', 'account-passkey-add', { ...view, section: 'methods', needsCode: true, passkey: proving, name: LONG }],
  ['account-passkey-create', 'account-passkey-add', { ...view, section: 'methods', creation: true, passkey: { mode: 'create', options: {} } }],
  ['account-factor-add', 'account-factor-add', { ...view, section: 'methods', id: 'a', seed, uri, qr, proved: false, error: ({ errors }) => errors.wrongCode }, 'Northwind ID'],
  ['account-factor-proved', 'account-factor-add', { ...view, section: 'methods', id: 'a', seed, uri, qr, proved: true }],
  ['account-factor-remove', 'account-factor-remove', { ...view, section: 'methods', needsCode: true, id: 'a', kind: 'totp', name: LONG, isLast: true }, 'Northwind ID'],
  ['enrol', 'enrol', { ...shared, kind: 'totp', view: { at: 'why' }, others: ['passkey'] }, 'Northwind ID'],
  ['enrol-passkey', 'enrol', { ...shared, kind: 'passkey', view: { at: 'why' }, others: ['totp'], passkey: { mode: 'create', options: {} }, error: ({ errors }) => errors.wrongPasskey }, 'Northwind ID'],
  ['enrol-account', 'enrol', { action, xsrf: 'x', kind: 'totp', view: { at: 'why' } }],
  ['enrol-app', 'enrol', { ...shared, kind: 'totp', view: { at: 'app', seed, uri, qr, proved: false }, error: ({ errors }) => errors.wrongCode }, 'Northwind ID'],
  ['enrol-imported', 'enrol', { ...shared, kind: 'recovery', view: { at: 'why' } }, 'Northwind ID'],
  ['enrol-codes', 'enrol', { ...shared, kind: 'totp', view: { at: 'codes', codes, account: 'ann@example.com' } }],
  ['account-factor-codes', 'account-factor-codes', { ...view, section: 'methods', codes, id: 'a', factor: 'b' }, 'Northwind ID'],
  ['account-factor-codes-new', 'account-factor-codes', { ...view, section: 'methods', needsCode: true, error: ({ errors }) => errors.wrongCode }],
  ['account-profile', 'account-profile', { ...view, section: 'profile', name: 'Ann', created_at: since, done: 'name' }, 'Northwind ID'],
  ['account-profile-long', 'account-profile', { ...longView, section: 'profile', name: LONG, created_at: since }],
  ['account-password', 'account-password', { ...view, section: 'methods', endingTokens: 3, mayRemove: true }, 'Northwind ID'],
  ['account-password-set', 'account-password', { ...view, section: 'methods', noPassword: true, mayRemove: false }],
  ['account-password-remove', 'account-password-remove', { ...view, section: 'methods', needsCode: true, error: ({ account }) => account.lastPassword }, 'Northwind ID'],
  ['account-password-wrong', 'account-password', { ...view, section: 'methods', mayRemove: false, error: ({ account }) => account.wrongCurrent }],
  ['account-email', 'account-email', { ...view, section: 'email', email: 'ann@example.com' }, 'Northwind ID'],
  ['account-email-unverified', 'account-email', { ...view, section: 'email', unverified: `${LONG.toLowerCase()}@example.com`, typed: 'x', error: ({ account }) => account.wrongAddress }],
  ['account-email-none', 'account-email', { ...view, section: 'email', done: 'address' }],
  ['account-tokens', 'account-tokens', {
    ...view,
    section: 'tokens',
    may: 'all',
    added: `fi_pat_${'0123456789abcdefghijklmnopqrstuvwxyz'.repeat(2).slice(0, 49)}`,
    tokens: [
      { id: 'a', name: 'Nightly report', last4: 'aB1c', scopes, created_at: since, expires_at: last_used_at, last_used_at, last_used_from: '2001:db8:1:2:3:4:5:6' },
      { id: 'b', name: LONG, last4: 'dE2f', scopes: [{ scope: `https://api.example/${LONG}` }], resource: LONG, created_at: since, expires_at: last_used_at }
    ]
  }, 'Northwind ID'],
  ['account-tokens-none', 'account-tokens', { ...longView, section: 'tokens', may: 'none', tokens: [] }],
  ['account-tokens-full', 'account-tokens', { ...view, section: 'tokens', may: 'full', tokens: [], done: 'token-removed' }],
  ['account-token-new', 'account-token-new', { ...view, section: 'tokens', needsCode: true, last: since, places: [{ place: 'here', scopes }] }, 'Northwind ID'],
  ['account-token-new-places', 'account-token-new', {
    ...view,
    section: 'tokens',
    noPassword: true,
    last: since,
    places: [{ place: 'here', scopes }, { place: 'https://orders.example', name: LONG, scopes: [{ scope: 'roles', at: LONG }, { scope: `https://api.example/${LONG}` }] }],
    typed: { name: LONG, expires: '2026-11-25', place: 'https://orders.example', scopes: ['roles'], wrong: 'expires' },
    error: ({ account }) => account.wrongTokenDay
  }],
  ['account-data', 'account-data', { ...view, section: 'data' }, 'Northwind ID'],
  ['account-data-again', 'account-data', { ...longView, section: 'data', needsCode: true, error: ({ account }) => account.dataAgain({ minutes: 17 }) }],
  ['account-delete', 'account-delete', { apps: 2, ...view, section: 'delete' }, 'Northwind ID'],
  ['account-deleted', 'account-deleted', {}, 'Northwind ID'],
  ['account-sessions', 'account-sessions', {
    ...view,
    section: 'sessions',
    browsers: [{ id: 'a', place, since, last_used_at, current: true }, { id: 'b', place: { browser: 'Safari', system: 'iPhone', address: '2001:db8:1:2:3:4:5:6' }, since, last_used_at }, { id: 'c', place: {}, since, last_used_at }],
    apps: [{ id: 'd', client, place, since, last_used_at }, { id: 'e', client: { name: LONG }, since, last_used_at }],
    more: 12
  }, 'Northwind ID'],
  ['account-sessions-one', 'account-sessions', { ...view, section: 'sessions', browsers: [{ id: 'a', place, since, last_used_at, current: true }], apps: [], more: 0, done: 'others' }],
  ['account-apps', 'account-apps', {
    ...view,
    section: 'apps',
    apps: [
      { client_id: 'a', client, vouched: true, scopes, connected_at: since, last_used_at },
      { client_id: 'b', client: { name: LONG }, vouched: false, scopes: [{ scope: `https://api.example/${LONG}` }], connected_at: since, last_used_at }
    ],
    more: 0
  }, 'Northwind ID'],
  ['account-apps-none', 'account-apps', { ...view, section: 'apps', apps: [], more: 0, done: 'disconnected' }],
  ['account-activity', 'account-activity', {
    ...view,
    section: 'activity',
    events: [
      { type: 'sign_in.failed', time: last_used_at, failed: true, by: 'page', address: '2001:db8:1:2:3:4:5:6', count: 17 },
      { type: 'sign_in.succeeded', time: last_used_at, failed: false, by: 'page', address: '203.0.113.0/24', method: { kind: 'password' }, acr: 'mfa' },
      { type: 'sign_in.succeeded', time: last_used_at, failed: false, by: 'page', method: { kind: 'upstream', name: LONG } },
      { type: 'user.roles_changed', time: since, failed: false, by: 'operator', granted: ['editor', LONG], removed: ['manager'] },
      { type: 'session.ended', time: since, failed: false, by: 'app', client: { name: LONG } },
      { type: 'app.disconnected', time: since, failed: false, by: 'page', client: {} },
      { type: 'user.email_restored', time: since, failed: false, by: 'page' }
    ],
    clientEvents: [{ type: 'token.revoked', time: since, failed: false, by: 'app', client: { name: LONG }, count: 17 }]
  }, 'Northwind ID'],
  ['account-activity-none', 'account-activity', { ...view, section: 'activity', events: [], clientEvents: [] }],
  ['account-clients', 'account-clients', {
    ...view,
    section: 'clients',
    clients: [
      { client_id: 'a', client, tokenAuth: 'secret', disabled: false }, { client_id: 'b', client: { name: LONG }, tokenAuth: 'none', disabled: true }, { client_id: 'c', client: { name: '' }, tokenAuth: 'none', disabled: false }
    ],
    next: 'after=x'
  }, 'Northwind ID'],
  ['account-client', 'account-client', {
    ...view,
    section: 'clients',
    client_id: 'a',
    client,
    created_at: since,
    tokenAuth: 'secret',
    readable: true,
    disabled: false,
    redirectUris: ['https://harbour.example/cb', `https://${LONG.slice(0, 60)}.example/cb`],
    scopes,
    secret: 'Qw8Zr2Lm5Tx9Vb3N',
    match: '"x"',
    mayAdd: true,
    keys: [],
    mayAddKey: true,
    secrets: [
      { id: 'first', ended: false, last_used_at },
      { id: 'a', name: 'Nightly report', last4: 'x7Qp', created_at: since, expires_at: '2027-11-22T23:59:59.999Z', ended: false, last_used_at },
      { id: 'b', name: LONG, last4: 'Ab1c', created_at: since, expires_at: since, ended: true }
    ]
  }, 'Northwind ID'],
  ['account-client-added', 'account-client', {
    ...view, section: 'clients', client_id: 'a', client, created_at: since, tokenAuth: 'secret', readable: false, disabled: false, redirectUris: [], scopes: [], match: '"x"', keys: [], mayAddKey: true, mayAdd: false, secrets: [{ id: 'a', name: 'Nightly report', last4: 'aB1c', created_at: since, ended: false }], added: 'fi_sec_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG0aB1cD'
  }],
  ['account-client-refused', 'account-client', {
    ...view, section: 'clients', client_id: 'a', client, created_at: since, tokenAuth: 'secret', readable: false, disabled: false, redirectUris: [], scopes: [], match: '"x"', keys: [], mayAddKey: true, mayAdd: true, secrets: [], typed: { name: LONG, expires: '2026-11-19', wrong: 'expires' }, error: ({ account }) => account.wrongLastDay
  }, 'Northwind ID'],
  ['account-client-keys', 'account-client', {
    ...view,
    section: 'clients',
    client_id: 'a',
    client,
    created_at: since,
    tokenAuth: 'private_key_jwt',
    readable: false,
    disabled: false,
    redirectUris: [],
    scopes: [],
    match: '"x"',
    mayAdd: true,
    secrets: [],
    keys: [{ id: 'a', kid: 'nightly-2026', algorithms: ['RS256', 'PS256'], created_at: since, last_used_at }, { id: 'b', kid: LONG, algorithms: ['ES256'], created_at: since }],
    mayAddKey: true,
    typed: { key: `{ "kty": "oct", "kid": "${LONG}" }`, wrong: 'key' },
    error: ({ account }) => account.privateKey
  }, 'Northwind ID'],
  ['account-client-public', 'account-client', { ...view, section: 'clients', client_id: 'b', client, created_at: since, tokenAuth: 'none', readable: false, disabled: true, redirectUris: [], scopes: [], secrets: [], match: '', mayAdd: true, keys: [], mayAddKey: true }],
  ['account-confirm', 'account-confirm', {
    ...view, section: 'apps', question: ({ account }, app) => account.disconnectQuestion({ app }), subject: client.name, warning: ({ account }) => account.disconnectWarning, submit: ({ account }) => account.disconnect, action, back: '/account/apps', fields: { client: 'a' }
  }, 'Northwind ID']
]

t.test('every page of the account, wide and narrow, light and dark, in every language', { skip }, async (t) => await checkLook(t, ROWS))
