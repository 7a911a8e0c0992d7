import type { OidcOptions } from '../../schemas/oidc.ts'
import type { Options } from '../../schemas/options.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import { defined } from '../defined.ts'
import { readMessage } from '../failure.ts'
import { isOver } from '../lazy-migration/end.ts'
import type { Migrate } from '../lazy-migration/index.ts'
import type { Mail } from '../mail/port.ts'
import { parseMailUrl } from '../mail/smtp.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import type { RoleNames } from '../roles.ts'
import { nameUpstream, toLogoutUri, toRedirectUri } from '../upstreams/kinds.ts'
import type { FoundParty } from '../ways/relying-party.ts'
import type { WebhookRecord } from '../webhooks/record.ts'

/** Another provider, with what to register there. */
interface Provider {
  id: string
  kind: string
  name: string
  redirect_uri: string
  backchannel_logout_uri?: string
  /** Why the provider does not take the redirect URI. */
  why?: string
}

/** What the service can do with its settings. */
export interface Capability {
  name: typeof CAPABILITIES[number]
  /** `broken`: the settings turn it on, and it cannot work. */
  state: 'on' | 'off' | 'broken'
  summary?: string
  /** Why it cannot work. */
  why?: string
  to_do?: string
  providers?: Provider[]
}

type Judgement = Omit<Capability, 'name'>

/** What the judgements depend on. */
export interface Judged {
  /** The options that the services are opened with. */
  options: Pick<
    Options,
    'signUp' | 'signUpDomains' | 'upstreams' | 'passkeys' | 'factors' | 'personalTokens' | 'console' | 'production' | 'forwardAuth' | 'mail' | 'secretKey'
  > & {
    roles: RoleNames
    /** How emails are sent. Absent: none are. */
    sender?: Mail | undefined
    migrate?: Migrate | undefined
    now?: (() => number) | undefined
  }
  /** The authorization server; false: none. */
  server: false | { options: Pick<OidcOptions, 'issuer' | 'documents' | 'name'> }
  passkeys: FoundParty
  /** The URL of the service: its issuer, or without one the address that it listens on. */
  url: string
  checkUrl: Outbound['checkUrl']
  /** Where metrics are served, by the first process and by the last one. Absent: nowhere. */
  metrics?: { first: string, last: string } | undefined
  /** The registered webhooks. Absent: they could not be read. */
  webhooks?: readonly Pick<WebhookRecord, 'id' | 'url' | 'state'>[] | undefined
}

export const CAPABILITIES = [
  'mail', 'sign-up', 'providers', 'passkeys', 'factors', 'agents', 'migration', 'webhooks', 'personal-tokens', 'console', 'forward-auth', 'metrics'
] as const

export const isLocal = ({ hostname }: URL): boolean => /^(localhost|.*\.localhost|127\..*|\[::1\])$/.test(hostname)

const NO_SERVER: Judgement = { state: 'off', summary: 'There is no authorization server.', to_do: 'Set IDENTITY_OIDC=on.' }

function judgeMail ({ options: { sender, mail }, server }: Judged): Judgement {
  if (sender === undefined || server === false) {
    return { state: 'off', summary: 'Nothing is emailed.', to_do: 'Set IDENTITY_MAIL_URL, IDENTITY_MAIL_FROM and IDENTITY_ISSUER.' }
  }
  if (mail === undefined) return { state: 'on', summary: 'By a function of the app.' }
  const { host, port, secure } = parseMailUrl(mail.url)
  const issuer = URL.parse(server.options.issuer ?? '')
  const links = issuer !== null && isLocal(issuer) ? ` Links lead to ${issuer.origin}, which works on this device only.` : ''
  return {
    state: 'on',
    summary: `By ${host}, port ${port} (${secure ? 'TLS' : 'STARTTLS'}), from ${mail.from}.${links}`,
    to_do: '`mail test --to ADDRESS` tries it.'
  }
}

function judgeSignUp ({ options: { signUp, signUpDomains: domains, sender } }: Judged): Judgement {
  if (!signUp || sender === undefined) {
    const unused = domains === undefined ? '' : ' IDENTITY_SIGN_UP_DOMAINS has no effect.'
    return { state: 'off', summary: `Nobody makes an account for themselves.${unused}`, to_do: 'Set IDENTITY_SIGN_UP=on, with email.' }
  }
  return { state: 'on', summary: domains === undefined ? 'Everybody with an address.' : `Whoever has an address at ${domains.join(', ')}.` }
}

/** Why a provider refuses a redirect URI. The rules are those of the provider's own console. */
function refuseRedirect ({ kind }: Pick<Upstream, 'kind'>, issuer: URL): string | undefined {
  if (kind === 'apple' && (issuer.protocol !== 'https:' || isLocal(issuer))) return 'Apple takes a redirect URI with https and a public name only'
  const isPlain = issuer.protocol !== 'https:' && !isLocal(issuer)
  return isPlain && (kind === 'google' || kind === 'microsoft') ? 'it takes a redirect URI with https only, except on localhost' : undefined
}

function judgeProviders ({ options: { upstreams }, server, url: own }: Judged): Judgement {
  if (server === false) return NO_SERVER
  if (upstreams.length === 0) return { state: 'off', summary: 'People sign in here only.', to_do: 'Name a file in IDENTITY_UPSTREAMS_FILE.' }
  const { issuer } = server.options
  const url = new URL(issuer ?? own)
  const providers = upstreams.map((upstream): Provider => defined({
    id: upstream.id,
    kind: upstream.kind,
    name: nameUpstream(upstream),
    redirect_uri: toRedirectUri(url, upstream.id),
    backchannel_logout_uri: toLogoutUri(upstream, issuer),
    why: refuseRedirect(upstream, url)
  }))
  const refused = providers.filter(({ why }) => why !== undefined)
  return defined<Judgement>({
    state: refused.length > 0 ? 'broken' : 'on',
    summary: `${upstreams.length} ${upstreams.length === 1 ? 'provider' : 'providers'}.${issuer === undefined ? ' Without IDENTITY_ISSUER, a redirect URI is of the address that browsers use.' : ''}`,
    why: refused.length > 0 ? refused.map(({ id, why }) => `${id}: ${why}`).join('; ') : undefined,
    to_do: refused.length > 0 ? 'Set IDENTITY_ISSUER to the https URL of the service.' : 'Register each redirect URI there; `upstream test --id ID` tries one.',
    providers
  })
}

function judgePasskeys ({ options, passkeys: { party, text }, server }: Judged): Judgement {
  if (server === false) return NO_SERVER
  if (party !== undefined) return { state: 'on', summary: `For ${party.id}, on pages of ${party.origin}.` }
  if (!options.passkeys) return { state: 'off', summary: 'Nobody adds or uses one.', to_do: 'Set IDENTITY_PASSKEYS=on.' }
  return { state: 'broken', why: (text ?? '').replace(/^passkeys are off, because /, ''), to_do: 'Set IDENTITY_ISSUER, or IDENTITY_PASSKEYS=off.' }
}

function judgeFactors ({ options: { factors }, server }: Judged): Judgement {
  if (server === false) return NO_SERVER
  if (factors === 'off') return { state: 'off', summary: 'Nobody can add one.', to_do: 'Set IDENTITY_FACTORS=optional, or required.' }
  if (factors === 'required') return { state: 'on', summary: 'Everybody needs one to sign in.' }
  const held = 'Those who have added one are asked for it.'
  return { state: 'on', summary: factors === 'optional' ? held : `${held} People with these roles need one: ${factors.roles.join(', ')}.` }
}

function judgeAgents ({ server, checkUrl }: Judged): Judgement {
  const hosts = server === false ? undefined : server.options.documents?.hosts
  if (hosts === undefined) return { state: 'off', summary: 'There are no apps but registered ones.', to_do: 'Name hosts in IDENTITY_DOCUMENT_HOSTS.' }
  const names = hosts === '*' ? ['*'] : hosts.map((entry) => typeof entry === 'string' ? entry : entry.host)
  const refused = names.filter((name) => name !== '*').flatMap((name) => refuse(name, () => checkUrl(`https://${name}/`)))
  if (refused.length > 0) {
    return { state: 'broken', why: refused.join('; '), to_do: 'Name the host in IDENTITY_OUTBOUND_HOSTS too, or remove it.' }
  }
  return { state: 'on', summary: `Documents of ${names.includes('*') ? 'any host' : names.join(', ')} describe apps.` }
}

/** What a check says against something, with its name. */
function refuse (name: string, check: () => unknown): string[] {
  try {
    check()
    return []
  } catch (error) {
    return [`${name}: ${readMessage(error)}`]
  }
}

function judgeMigration ({ options: { migrate, now = Date.now } }: Judged): Judgement {
  if (migrate === undefined) {
    return { state: 'off', summary: 'No other system is asked about passwords.', to_do: 'Set IDENTITY_MIGRATE_URL and IDENTITY_MIGRATE_SECRET_FILE.' }
  }
  const { create, until } = migrate
  const system = 'url' in migrate && migrate.url !== undefined ? new URL(migrate.url).host : 'A function of the app'
  if (isOver(migrate, now())) {
    return {
      state: 'broken',
      why: `IDENTITY_MIGRATE_UNTIL has passed (${until}), so the old system is asked about nobody`,
      to_do: 'Remove IDENTITY_MIGRATE_URL, or set a later IDENTITY_MIGRATE_UNTIL.'
    }
  }
  const whom = create ? 'anybody who is not here' : 'people whom an import has marked'
  return { state: 'on', summary: `${system} is asked about ${whom}${until === undefined ? '' : `, until ${until}`}.` }
}

function judgeWebhooks ({ checkUrl, webhooks }: Judged): Judgement {
  if (webhooks === undefined) return { state: 'on', summary: 'Events go to the webhooks that are registered.' }
  const on = webhooks.filter(({ state }) => state === 'on')
  const refused = on.flatMap(({ id, url }) => refuse(id, () => checkUrl(url)))
  if (refused.length > 0) return { state: 'broken', why: refused.join('; '), to_do: 'Name the host in IDENTITY_OUTBOUND_HOSTS, or change the webhook.' }
  if (webhooks.length === 0) return { state: 'on', summary: 'None is registered.', to_do: '`webhook create` registers one.' }
  return { state: 'on', summary: `${on.length} of ${webhooks.length} get events.`, ...(on.length < webhooks.length && { to_do: '`webhook list` says why the others get none.' }) }
}

function judgePersonalTokens ({ options: { personalTokens } }: Judged): Judgement {
  if (personalTokens === false) {
    return { state: 'off', summary: 'Nobody can make a token for a script.', to_do: 'Set IDENTITY_PERSONAL_TOKENS to the days that one may live.' }
  }
  const { maxDays, roles } = personalTokens
  return { state: 'on', summary: `${roles === undefined ? 'Everybody' : `Whoever holds ${roles.join(' or ')}`} can make them, for ${maxDays} days at most.` }
}

const STRENGTHS = { 1: 'signed in in any way', mfa: 'signed in with a second factor', phr: 'signed in with a passkey' }

function judgeConsole ({ options: { console: own, production }, server, url }: Judged): Judgement {
  if (server === false) return NO_SERVER
  if (own === false) return { state: 'off', summary: 'There is no console.', to_do: 'Set IDENTITY_ADMIN_PATH=/admin.' }
  const { path, acr = production ? 'mfa' : '1', adminNetworks } = own
  const near = adminNetworks === undefined ? 'from everywhere' : `from ${adminNetworks.join(', ')} only`
  return { state: 'on', summary: `${url}${path}, ${near}, for administrators and support staff who have ${STRENGTHS[acr]}.` }
}

function judgeForwardAuth ({ options: { forwardAuth } }: Judged): Judgement {
  if (forwardAuth === false) return { state: 'off', summary: 'No proxy asks about requests.', to_do: 'Set IDENTITY_FORWARD_AUTH=on.' }
  const summary = 'At /api/v1/auth/forward, with the rule in the query.'
  return { state: 'on', summary: forwardAuth === true ? summary : `${summary} Below it, the rule is in the header ${forwardAuth.header}.` }
}

function judgeMetrics ({ metrics }: Judged): Judgement {
  if (metrics === undefined) return { state: 'off', summary: 'Nothing is measured.', to_do: 'Set IDENTITY_METRICS=HOST:PORT.' }
  const { first, last } = metrics
  return { state: 'on', summary: `http://${first}/metrics${first === last ? '' : ` to ${last}, one for each worker`}.` }
}

const JUDGES: Record<Capability['name'], { variables: RegExp, judge: (judged: Judged) => Judgement }> = {
  mail: { variables: /^IDENTITY_MAIL_/, judge: judgeMail },
  'sign-up': { variables: /^IDENTITY_SIGN_UP/, judge: judgeSignUp },
  providers: { variables: /^IDENTITY_UPSTREAMS_FILE/, judge: judgeProviders },
  passkeys: { variables: /^IDENTITY_(PASSKEYS|RELYING_PARTY)/, judge: judgePasskeys },
  factors: { variables: /^IDENTITY_(FACTORS|UNDO_FACTORS)/, judge: judgeFactors },
  agents: { variables: /^IDENTITY_DOCUMENT_HOSTS/, judge: judgeAgents },
  migration: { variables: /^IDENTITY_MIGRATE_/, judge: judgeMigration },
  webhooks: { variables: /^IDENTITY_OUTBOUND_HOSTS/, judge: judgeWebhooks },
  'personal-tokens': { variables: /^IDENTITY_PERSONAL_TOKENS/, judge: judgePersonalTokens },
  console: { variables: /^IDENTITY_ADMIN_/, judge: judgeConsole },
  'forward-auth': { variables: /^IDENTITY_FORWARD_AUTH/, judge: judgeForwardAuth },
  metrics: { variables: /^IDENTITY_METRICS/, judge: judgeMetrics }
}

/**
 * Judges what the service can do, from what the start makes of the settings.
 * @param judged absent: the start refuses the settings, and only what a problem names can be judged
 * @param problems why the start refuses them
 */
export function judgeCapabilities (judged: Judged | undefined, problems: readonly string[]): Capability[] {
  return CAPABILITIES.flatMap((name): Capability[] => {
    const { variables, judge } = JUDGES[name]
    const named = problems.filter((problem) => variables.test(problem))
    if (named.length > 0) return [{ name, state: 'broken', why: named.join('; ') }]
    return judged === undefined ? [] : [{ name, ...judge(judged) }]
  })
}
