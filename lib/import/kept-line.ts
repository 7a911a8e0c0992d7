import { EXPORT_FORMAT, type Kept, KeptSchema, type KeptWay } from '../../schemas/export.ts'
import { checkAccount, checkMap, checkText, checkTimestamp } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import type { Json } from '../store/port.ts'
import type { ClaimedRoles } from '../records/user.ts'
import { judgeEarlier } from '../upstreams/earlier-addresses.ts'
import { MOST_WAYS, PASSWORD, toWayKey } from '../way.ts'
import { isCodeSet } from '../ways/recovery-codes.ts'
import { type CheckedLine, type LineOptions, type LineParts, checkLine, validate } from './check-line.ts'
import { Refused, naming } from './refused.ts'

/** A line of an export of this service, with what only such a line may say. */
export interface CheckedKeptLine extends CheckedLine {
  id: string
  created_at: string
  kept: Kept
}

/** The keys of ways are computed, as far as they can be: a line cannot give somebody the passkey of another. */
function toKey (field: string, { kind, key, material }: KeptWay): string | undefined {
  const { credential_id, issuer, subject } = material as { [field: string]: Json }
  if (kind === 'passkey') {
    if (typeof credential_id !== 'string') throw new Refused(`${field}.material`, 'has no credential_id')
    return toWayKey('passkey', credential_id)
  }
  if (kind === 'upstream' && typeof issuer === 'string' && typeof subject === 'string') return toWayKey('upstream', issuer, subject)
  return kind === 'upstream' ? key : undefined
}

interface KeptLineParts extends LineParts {
  /** Whether the upstream with this id is an authority on addresses. */
  isAuthority: (upstream: string) => boolean
}

function checkWay (way: KeptWay, index: number): KeptWay {
  const field = `kept.ways[${index}]`
  const { key: _key, kind, seed, codes_key, material, ...rest } = way
  if ((kind === 'totp') !== (seed !== undefined)) throw new Refused(`${field}.seed`, kind === 'totp' ? 'is required' : 'belongs to authenticator apps only')
  if (kind === 'recovery' && !isCodeSet(material)) throw new Refused(`${field}.material`, 'has no hashes of codes, or a salt or a cost that is not allowed')
  const hasKey = kind === 'recovery' && 'salt' in material
  if (hasKey !== (codes_key !== undefined)) throw new Refused(`${field}.codes_key`, hasKey ? 'is required' : 'belongs to backup codes with a salt only')
  if (rest.name !== undefined) checkText(`${field}.name`, rest.name)
  const key = toKey(field, way)
  if (kind === 'upstream' && key === undefined) throw new Refused(`${field}.key`, 'is required')
  return defined({
    ...rest,
    kind,
    key,
    seed,
    codes_key,
    material: checkMap(`${field}.material`, material as { [key: string]: Json }),
    at: checkTimestamp(`${field}.at`, rest.at),
    created_at: checkTimestamp(`${field}.created_at`, rest.created_at),
    last_used_at: rest.last_used_at === undefined ? undefined : checkTimestamp(`${field}.last_used_at`, rest.last_used_at)
  })
}

/** A service whose second factors are off takes none, and with `withoutFactors` it leaves them out. */
function checkWays (ways: readonly KeptWay[], { withoutFactors }: LineOptions, { canAddFactors }: LineParts): KeptWay[] {
  const checked = ways.map(checkWay)
  for (const [kind, most] of Object.entries(MOST_WAYS)) {
    if (checked.filter((way) => way.kind === kind).length > most) throw new Refused('kept.ways', `has more than ${most} of the kind ${kind}`)
  }
  if (checked.some(({ id }) => id === PASSWORD)) throw new Refused('kept.ways', 'has the id of the password')
  if (new Set(checked.map(({ id }) => id)).size < checked.length) throw new Refused('kept.ways', 'has an id twice')
  const allowed = canAddFactors ? checked : checked.filter(({ kind }) => kind === 'upstream' || kind === 'passkey')
  if (allowed.length < checked.length && withoutFactors !== true) {
    throw new Refused('kept.ways', `two-factor authentication is off; ${naming('without-factors')} brings the person in without them`)
  }
  return allowed
}

const TIMES = ['modified_at', 'verified_at', 'email_verified_at', 'disabled_at', 'invited_at'] as const

/** An answer that is ahead of the clock here counts as one of now: otherwise no later one would change a role until then. */
function checkClaimed (claimed: ClaimedRoles, now: number): ClaimedRoles {
  const latest = toTimestamp(now)
  return Object.fromEntries(Object.entries(claimed).map(([id, answer]) => {
    const at = checkTimestamp(`kept.claimed_roles.${id}.at`, answer.at)
    return [id, { ...answer, at: at < latest ? at : latest }]
  }))
}

/**
 * Checks a line of an export with hashes. What it says of addresses and hashes is what this service has said of them.
 * @throws Refused, and ErrParam
 */
export async function checkKeptLine (value: unknown, options: LineOptions, parts: KeptLineParts): Promise<CheckedKeptLine> {
  if (typeof value !== 'object' || value === null || (value as { format?: unknown }).format !== EXPORT_FORMAT) {
    throw new Refused('format', `must be ${EXPORT_FORMAT}`)
  }
  const { format: _format, kept: given, ...line } = value as { format: string, kept: Kept, email?: unknown, email_verified?: unknown }
  validate(KeptSchema, given, 'kept')
  const checked = await checkLine(line, { ...options, trustEmails: true, allowWeak: true }, parts)
  const { id, created_at } = checked
  if (id === undefined || created_at === undefined) throw new Refused(id === undefined ? 'id' : 'created_at', 'is required')
  if (checked.disabled !== (given.disabled_at !== undefined)) throw new Refused('kept.disabled_at', 'does not fit disabled')
  if ((line.email_verified === true) !== (given.email_verified_at !== undefined)) throw new Refused('kept.email_verified_at', 'does not fit email_verified')
  if (given.email_verified_by !== undefined && given.email_verified_at === undefined) throw new Refused('kept.email_verified_by', 'needs email_verified_at')
  const times = Object.fromEntries(TIMES.flatMap((field) => given[field] === undefined ? [] : [[field, checkTimestamp(`kept.${field}`, given[field])]]))
  const ways = checkWays(given.ways ?? [], options, parts)
  // Also one that nobody has verified: an administrator has set it.
  const email = typeof line.email === 'string' ? checkAccount(line.email) : checked.email
  if (given.email_verified_at !== undefined && email === undefined) throw new Refused('email', 'is required with email_verified')
  const { email: _email, ...rest } = checked
  const claimed = given.claimed_roles && { claimed_roles: checkClaimed(given.claimed_roles, parts.now) }
  const { email_verified_at: at, email_verified_by: by, ...others } = { ...given, ...times, ...claimed }
  const verdict = judgeEarlier({
    created_at, imported_source: given.imported?.source, ways: Object.fromEntries(ways.map((way) => [way.id, way]))
  }, given, parts.isAuthority)
  const isUnproved = verdict === false
  return defined({
    ...rest,
    id,
    created_at,
    email: email !== undefined && isUnproved ? undefined : email,
    dropped: [...(isUnproved ? ['email_verified'] : []), ...(ways.length < (given.ways ?? []).length ? ['kept.ways'] : [])],
    kept: { ...others, ...(at !== undefined && !isUnproved && { email_verified_at: at, email_verified_by: by ?? verdict ?? 'import' }), ways }
  })
}
