import type { NextStep } from '../../schemas/status.ts'
import { type Capability, type Judged, isLocal, judgeCapabilities } from './capabilities.ts'

/** What the next steps depend on. */
export interface JudgedSetUp extends Judged {
  /** When the last backup was made that the database knows of. Absent: none was recorded. */
  backedUpAt?: string | undefined
}

type Found = NextStep | false | undefined

const hasFactor = ({ options: { factors, roles } }: Judged): boolean =>
  factors === 'required' || (typeof factors === 'object' && factors.roles.includes(roles.admin))

function judgeIssuer ({ server }: Judged): Found {
  if (server === false) return
  const { issuer } = server.options
  if (issuer === undefined) {
    return { code: 'issuer_missing', text: 'Set the URL under which people and apps reach the service, with the option oidc.issuer (IDENTITY_ISSUER).' }
  }
  const url = new URL(issuer)
  return url.protocol !== 'https:' && !isLocal(url) && {
    code: 'issuer_insecure', text: 'Passwords and tokens travel without TLS: give the option oidc.issuer (IDENTITY_ISSUER) an https URL.'
  }
}

/** What stands in the way of a capability, and the option that is in question. */
const BROKEN: readonly { code: NextStep['code'], name: Capability['name'], what: string, option: string }[] = [
  {
    code: 'providers_broken',
    name: 'providers',
    what: 'Sign-in with other providers cannot work',
    option: 'the option oidc.issuer (IDENTITY_ISSUER) or upstreams (IDENTITY_UPSTREAMS_FILE)'
  },
  {
    code: 'passkeys_broken',
    name: 'passkeys',
    what: 'Passkeys cannot work',
    option: 'the option oidc.issuer (IDENTITY_ISSUER), relyingParty (IDENTITY_RELYING_PARTY) or passkeys (IDENTITY_PASSKEYS)'
  },
  {
    code: 'agents_broken',
    name: 'agents',
    what: 'Some apps from documents cannot work',
    option: 'the option outboundHosts (IDENTITY_OUTBOUND_HOSTS) or oidc.documents (IDENTITY_DOCUMENT_HOSTS)'
  },
  {
    code: 'migration_broken',
    name: 'migration',
    what: 'The old system is asked about nobody',
    option: 'the option migrate.until (IDENTITY_MIGRATE_UNTIL), or remove migrate.url (IDENTITY_MIGRATE_URL)'
  },
  {
    code: 'webhooks_broken',
    name: 'webhooks',
    what: 'Some webhooks cannot be called',
    option: 'the option outboundHosts (IDENTITY_OUTBOUND_HOSTS), or the webhook'
  }
]

/** What to set up next, the most important first. It judges as `config check` does. */
export function judgeNext (judged: JudgedSetUp): NextStep[] {
  const { options, server, metrics, backedUpAt } = judged
  const capabilities = judgeCapabilities(judged, [])
  const broken = BROKEN.map(({ code, name, what, option }): Found => {
    const found = capabilities.find((one) => one.name === name)
    return found?.state === 'broken' && { code, text: `${what} (${found.why}): change ${option}.` }
  })
  const steps: Found[] = [
    judgeIssuer(judged),
    options.secretKey === undefined && {
      code: 'secret_key', text: 'The secret key is a file that the first start has made: configure a key of your own with the option secretKey (IDENTITY_SECRET_KEY_FILE).'
    },
    backedUpAt === undefined && {
      code: 'backup', text: 'No backup was ever recorded: back up the database of the option database (DATABASE_URL) with the command backup, or record that of another tool with backup record.'
    },
    server !== false && options.sender === undefined && {
      code: 'mail', text: 'Nobody can recover an account by email: set a mail server with the options mail.url (IDENTITY_MAIL_URL) and mail.from (IDENTITY_MAIL_FROM).'
    },
    server !== false && !hasFactor(judged) && {
      code: 'admin_factors',
      text: `Administrators sign in without two-factor authentication: demand it with the option factors (IDENTITY_FACTORS=roles:${options.roles.admin}).`
    },
    ...broken,
    server !== false && server.options.name === undefined && {
      code: 'name', text: 'Pages and emails do not say whose they are: give the service a name with the option oidc.name (IDENTITY_NAME).'
    },
    metrics === undefined && { code: 'metrics', text: 'Nothing is measured, so no alert can fire: serve metrics with the option metrics (IDENTITY_METRICS).' }
  ]
  return steps.filter((step): step is NextStep => typeof step === 'object')
}
