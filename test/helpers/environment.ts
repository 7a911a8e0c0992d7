import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Secrets of `createEnvironment`. */
export const KEY = Buffer.alloc(32, 7).toString('base64')
export const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
export const CLIENT_SECRET = 'the-secret-at-google'

/** Sets every variable to another value than its default. Variables that name a file instead of a value are left out. @param dir for the files */
export function createEnvironment (dir: string): Record<string, string> {
  function write (name: string, text: string): string {
    writeFileSync(join(dir, name), text, { mode: 0o600 })
    return join(dir, name)
  }
  return {
    HOST: '::1',
    PORT: '0',
    DATABASE_URL: 'mongodb://127.0.0.1/x',
    LOG_LEVEL: 'silent',
    LOG_FORMAT: 'text',
    NODE_ENV: 'production',
    IDENTITY_DATA_DIR: '/var/lib/identity',
    IDENTITY_SECRET_KEY: KEY,
    IDENTITY_CREATE_DATABASE: 'on',
    IDENTITY_BCRYPT_COST: '4',
    IDENTITY_HASH_QUEUE: '5',
    IDENTITY_PASSWORD_MIN: '15',
    IDENTITY_FACTORS: 'roles:root, boss,',
    IDENTITY_RATE_LIMIT: 'off',
    IDENTITY_PASSKEYS: 'off',
    IDENTITY_RELYING_PARTY: 'example.org',
    IDENTITY_WRITE_LIMIT: '6',
    IDENTITY_CLIENTS_PER_USER: '7',
    IDENTITY_AUDIT_DAYS: '30',
    IDENTITY_ADDRESSES: 'net',
    IDENTITY_STORE_TIMEOUT: '600',
    IDENTITY_WAL_LIMIT: '65',
    IDENTITY_STALL_TIMEOUT: '700',
    IDENTITY_SHUTDOWN_TIMEOUT: '800',
    IDENTITY_SHUTDOWN_DELAY: '900',
    IDENTITY_WORKERS: '3',
    IDENTITY_BRIDGE_PREFIX: '/a/b-c',
    IDENTITY_BRIDGE_UPSTREAM: 'https://identity:3000/base',
    IDENTITY_OIDC: 'on',
    IDENTITY_ISSUER: 'https://id.example.org/base',
    IDENTITY_NAME: 'Example ID',
    IDENTITY_LOGO: 'logo.svg',
    IDENTITY_LOGO_DARK: 'logo-dark.svg',
    IDENTITY_ACCENT: '#24508f #a9c5f2',
    IDENTITY_HELP_ADDRESS: 'help@example.org',
    IDENTITY_TERMS_URL: 'https://example.org/terms',
    IDENTITY_PRIVACY_URL: 'https://example.org/privacy',
    IDENTITY_TEXTS: 'texts',
    IDENTITY_ACCOUNT_PATH: '/me',
    IDENTITY_ACCESS_TTL: '61',
    IDENTITY_REFRESH_TTL: '62',
    IDENTITY_SESSION_TTL: '63',
    IDENTITY_SESSION_MAX: '64',
    IDENTITY_REFRESH_MAX: '65',
    IDENTITY_SIGN_IN_LIMIT: 'off',
    IDENTITY_DOCUMENT_HOSTS: 'claude.ai, editor.example>cdn.example>editor:',
    IDENTITY_MAIL_URL: 'smtps://user:word@mail.example.org',
    IDENTITY_MAIL_FROM: 'Example <id@example.org>',
    IDENTITY_MAIL_LOGO: 'mail.png',
    IDENTITY_SIGN_UP: 'on',
    IDENTITY_SIGN_UP_DOMAINS: 'example.org, example.com',
    IDENTITY_SELF_DELETE: 'on',
    IDENTITY_UNDO_FACTORS: '24',
    IDENTITY_PERSONAL_TOKENS: '90',
    IDENTITY_PERSONAL_TOKENS_SCOPES: 'account:read, roles',
    IDENTITY_PERSONAL_TOKENS_ROLES: 'editor',
    IDENTITY_PERSONAL_TOKENS_RESOURCES: 'https://orders.example',
    IDENTITY_OPENAPI: 'off',
    IDENTITY_METRICS: '[::1]:9464',
    IDENTITY_LOG_CALLERS: 'off',
    IDENTITY_FORWARD_AUTH: 'on',
    IDENTITY_FORWARD_AUTH_HEADER: 'X-Identity-Rule',
    IDENTITY_TRUST_PROXY: 'loopback, 10.0.0.0/8,::1',
    IDENTITY_ROLE_ADMIN: 'root',
    IDENTITY_ROLE_MANAGER: 'boss',
    IDENTITY_ROLE_SERVICE: 'bot',
    IDENTITY_ROLE_SUPPORT: 'helpdesk',
    IDENTITY_MANAGER_ROLES: 'clerk, billing admin,boss,',
    IDENTITY_OUTBOUND_HOSTS: 'hooks.internal, 10.1.0.0/16,::1',
    IDENTITY_UPSTREAMS_FILE: write('upstreams.json', JSON.stringify([{ id: 'google', kind: 'google', clientId: 'c', clientSecretFile: write('google', CLIENT_SECRET) }])),
    IDENTITY_MIGRATE_URL: 'https://login.example.org/verify',
    IDENTITY_MIGRATE_SECRET_FILE: write('secret', SECRET),
    IDENTITY_MIGRATE_CREATE: 'on',
    IDENTITY_MIGRATE_TRUST_EMAILS: 'on',
    IDENTITY_MIGRATE_UNTIL: '2027-06-30T00:00:00Z'
  }
}
