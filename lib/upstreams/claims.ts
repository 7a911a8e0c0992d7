import { LIMITS } from '../../schemas/common.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import { checkAccount } from '../checks.ts'
import { defined } from '../defined.ts'
import { checkName } from '../names.ts'
import { isAddress } from '../records/user.ts'
import { judgeAddress } from './authority.ts'
import type { AnsweredRoles } from './claimed-roles.ts'
import { findServer } from './kinds.ts'
import { nameFactor } from './policy.ts'
import type { Claims } from './provider.ts'

/** Who a provider says that somebody is. */
export interface Claimed {
  issuer: string
  subject: string
  /** An address of which the provider is an authority (authority.ts): it is theirs. */
  address?: string
  /** An address that the provider has only seen: it may be somebody else's by now. Never beside `address`. */
  seen?: string
  /** What the provider calls them, if a name may say so. */
  name: string
  /** When they proved who they are: milliseconds since 1970. Absent: the provider does not say. */
  at?: number
  /** The session there. Absent: the provider does not name it. */
  sid?: string
  /** When they were sent there: ISO 8601. */
  asked_at?: string
  /** The roles that the map of the upstream gives them. Absent: it has none. */
  roles?: AnsweredRoles | undefined
  /** Whether they proved two kinds, by what the operator says of this provider. */
  both: boolean
  /** The claim that says so. */
  factor?: string
}

/** The most characters of a subject (OpenID Connect Core, 2). */
const SUBJECT = 255

/** An address in its stored form; undefined for a text that is none. */
function readAddress (value: unknown): string | undefined {
  if (typeof value !== 'string' || !isAddress(value)) return undefined
  try {
    return checkAccount(value.trim())
  } catch {
    return undefined
  }
}

function readName (upstream: Upstream, claims: Claims): string {
  const { given_name: given, family_name: family } = claims
  const parts = [given, family].filter((part) => typeof part === 'string')
  const found = claims[upstream.claims?.name ?? 'name'] ?? (parts.length > 0 ? parts.join(' ') : undefined)
  const name = typeof found === 'string' ? [...found.trim()].slice(0, LIMITS.name).join('') : ''
  try {
    return checkName('name', name)
  } catch {
    return ''
  }
}

/** The claim that says that two kinds were proved; undefined without one. */
function findFactor ({ factors = {} }: Upstream, { acr, amr }: Claims): string | undefined {
  const used = Array.isArray(amr) ? amr : []
  const method = factors.amr?.find((one) => used.includes(one))
  if (typeof acr === 'string' && factors.acr?.includes(acr) === true) return nameFactor('acr', acr)
  return method === undefined ? undefined : nameFactor('amr', method)
}

/** Where and as whom somebody is known there. Microsoft's `sub` differs between apps, so it is the tenant and the object there. */
function identify (upstream: Upstream, claims: Claims): { issuer: unknown, subject: unknown } {
  if (upstream.kind !== 'microsoft') return { issuer: claims['iss'], subject: claims['sub'] }
  return { issuer: `${findServer(upstream)}/${String(claims['tid'])}/v2.0`, subject: claims['oid'] }
}

/** Whether the claims come from a tenant that may sign in. Other kinds have none. */
export function isOfTenant ({ kind, tenants = [] }: Upstream, { tid }: Claims): boolean {
  if (kind !== 'microsoft') return true
  return typeof tid === 'string' && /^[0-9a-f-]{36}$/.test(tid) && (tenants.includes('all') || tenants.includes(tid))
}

/** Reads who somebody is, by claims that were verified. Null without a usable subject. */
export function readClaims (upstream: Upstream, claims: Claims): Claimed | null {
  const { issuer, subject } = identify(upstream, claims)
  if (typeof issuer !== 'string' || typeof subject !== 'string' || subject === '' || subject.length > SUBJECT) return null
  const address = readAddress(claims[upstream.claims?.email ?? 'email'])
  const word = address === undefined ? undefined : judgeAddress(upstream, claims, address)
  const { auth_time: time, sid } = claims
  const factor = findFactor(upstream, claims)
  return defined({
    issuer,
    subject,
    address: word === 'authority' ? address : undefined,
    seen: word === 'seen' ? address : undefined,
    name: readName(upstream, claims),
    at: typeof time === 'number' && Number.isSafeInteger(time) && time > 0 ? time * 1000 : undefined,
    sid: typeof sid === 'string' && sid !== '' && sid.length <= SUBJECT ? sid : undefined,
    both: factor !== undefined,
    factor
  })
}
