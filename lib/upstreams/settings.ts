import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Type } from '@sinclair/typebox'
import { MOST_UPSTREAMS, UpstreamSchema, type Upstream, type UpstreamKind } from '../../schemas/upstream.ts'
import type { Clock } from '../clock.ts'
import { warnOfMode } from '../file-mode.ts'
import { createOptionsReader } from '../options.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import { PROVERS } from '../user-changes/address-proof.ts'
import { isAuthority, saysAddresses } from './authority.ts'
import { findServer } from './kinds.ts'
import { LONGEST_REJOIN, isRejoinOn, listOwned } from './policy.ts'
import { readCode, readMessage } from '../failure.ts'

/** What the rules of upstreams depend on. */
export interface UpstreamSurroundings {
  signUp: boolean
  /** Absent: the time of day. */
  now?: Clock
}

const NO_FACTORS: readonly UpstreamKind[] = ['google', 'github', 'apple']

/** The fields that only some kinds have. */
const OF_KINDS: readonly (readonly [keyof Upstream, readonly UpstreamKind[]])[] = [
  ['roles', ['oidc', 'microsoft']],
  ['teamId', ['apple']],
  ['tenants', ['microsoft']],
  ['emails', ['oidc']],
  ['claims', ['oidc']],
  ['keyFile', ['apple', 'oidc']],
  ['clientSecretFile', ['google', 'microsoft', 'github', 'oidc']],
  ['clientSecret', ['google', 'microsoft', 'github', 'oidc']]
]

/** Why the word of an upstream does not count. */
function explainWord ({ kind }: Upstream): string {
  if (kind === 'oidc') return "needs emails: 'verified', because no address is proved otherwise"
  return `needs an authority on addresses, and ${kind} has only seen them`
}

/** What is wrong with the secret of an upstream. */
function * listSecretProblems ({ kind, clientSecret, clientSecretFile, keyFile, keyId, teamId }: Upstream): Generator<string> {
  const secrets = [clientSecret, clientSecretFile, keyFile].filter((secret) => secret !== undefined).length
  if (kind === 'apple' && (keyFile === undefined || keyId === undefined || teamId === undefined)) yield 'keyFile: is required with keyId and teamId'
  else if (secrets === 0) yield `clientSecretFile: is required${kind === 'oidc' ? ', or keyFile' : ''}`
  else if (secrets > 1) yield 'clientSecretFile: there must be one secret or one key'
  if (keyId !== undefined && keyFile === undefined) yield 'keyId: needs keyFile'
}

/** What is wrong with one upstream, in the order of its fields. */
function * listProblems (upstream: Upstream, { signUp, now = Date.now }: UpstreamSurroundings): Generator<string> {
  const { id, kind, issuer, create, link, domains, only, tenants, factors, rejoin } = upstream
  if (PROVERS.some((prover) => prover === id)) yield `id: must be none of ${PROVERS.join(', ')}, which name other proofs of an address`
  for (const [field, kinds] of OF_KINDS) {
    if (upstream[field] !== undefined && !kinds.includes(kind)) yield `${field}: ${kind} has none`
  }
  if (kind === 'oidc' && issuer === undefined) yield 'issuer: is required'
  yield * listSecretProblems(upstream)
  if (kind === 'microsoft' && tenants === undefined) yield 'tenants: is required: the ids of tenants, or all'
  if (tenants !== undefined && tenants.length > 1 && tenants.includes('all')) yield 'tenants: all stands alone'
  if (factors !== undefined && NO_FACTORS.includes(kind)) yield `factors: ${kind} does not say whether two-factor authentication was used`
  if (create && !signUp) yield 'create: needs the option signUp, because nobody may make an account by themselves'
  if (domains !== undefined && !saysAddresses(upstream)) yield `domains: ${explainWord(upstream)}`
  if (only === true && !isAuthority(upstream)) yield `only: ${explainWord(upstream)}`
  if (only === true && domains === undefined) yield 'only: needs domains'
  if (upstream.tokenMax !== undefined && only !== true) yield 'tokenMax: needs only'
  if (rejoin !== undefined) {
    if (Number.isNaN(Date.parse(rejoin.until))) yield 'rejoin.until: is no time'
    if (Date.parse(rejoin.until) > now() + LONGEST_REJOIN) yield 'rejoin.until: must be at most 30 days from now'
    if (only !== true && link !== 'verified') yield "rejoin: needs only or link: 'verified', because no identity joins by itself otherwise"
  }
  if (upstream.roleMax !== undefined && upstream.roles === undefined) yield 'roleMax: needs roles'
  if (link === 'verified' && !isAuthority(upstream)) yield `link: verified ${explainWord(upstream)}`
}

/** Reads a file with a secret. @throws Error that names the file and the cause */
function checkFile (path: string, check: (text: string) => unknown): void {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`the file ${path} cannot be read (${readCode(error)})`)
  }
  if (text.trim() === '') throw new Error(`the file ${path} is empty`)
  try {
    check(text)
  } catch {
    throw new Error(`the file ${path} has no private key in PEM, or one of another kind`)
  }
}

function checkKey (text: string, { kind }: Upstream): void {
  const key = createPrivateKey(text)
  if (kind === 'apple' && key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('another curve')
}

/**
 * Checks what the schema cannot say.
 * @returns oddities that do not prevent the start
 * @throws Error that names the upstream and its field
 */
export function checkUpstreams (upstreams: readonly Upstream[], surroundings: UpstreamSurroundings): string[] {
  const warnings: string[] = []
  const warn = ({ id }: Upstream, warning: string) => { warnings.push(`option upstreams: ${id}: ${warning}`) }
  const fail = ({ id }: Upstream, problem: string) => new Error(`option upstreams: ${id}: ${problem}`)
  const claimed = new Map<string, string>()
  const owned = new Map<string, string>()
  for (const [index, upstream] of upstreams.entries()) {
    if (upstreams.findIndex(({ id }) => id === upstream.id) !== index) throw fail(upstream, 'id: is used twice')
    const [problem] = listProblems(upstream, surroundings)
    if (problem !== undefined) throw fail(upstream, problem)
    const { clientSecretFile, keyFile, only, domains = [] } = upstream
    try {
      if (clientSecretFile !== undefined) checkFile(clientSecretFile, () => {})
      if (keyFile !== undefined) checkFile(keyFile, (text) => checkKey(text, upstream))
    } catch (error) {
      throw fail(upstream, `${keyFile === undefined ? 'clientSecretFile' : 'keyFile'}: ${readMessage(error)}`)
    }
    for (const path of [clientSecretFile, keyFile]) {
      if (path !== undefined) warnOfMode(path === keyFile ? 'key' : 'client secret', path, (message) => warn(upstream, message))
    }
    const { rejoin } = upstream
    if (rejoin !== undefined && !isRejoinOn(upstream, (surroundings.now ?? Date.now)())) warn(upstream, `rejoin: ended at ${rejoin.until}, remove it`)
    for (const role of listOwned(upstream)) {
      if (owned.has(role)) throw fail(upstream, `roles.map: the upstream ${owned.get(role)} gives the role ${role} already`)
      owned.set(role, upstream.id)
    }
    for (const domain of only === true ? domains : []) {
      if (claimed.has(domain)) throw fail(upstream, `only: the upstream ${claimed.get(domain)} has the domain ${domain} already`)
      claimed.set(domain, upstream.id)
    }
  }
  return warnings
}

/**
 * Checks that the servers of upstreams may be called. The address of a host name is checked at each call.
 * @throws Error that names the upstream
 */
export function checkServers (upstreams: readonly Upstream[], checkUrl: Outbound['checkUrl']): void {
  for (const upstream of upstreams) {
    try {
      checkUrl(findServer(upstream))
    } catch (error) {
      throw new Error(`option upstreams: ${upstream.id}: issuer: ${readMessage(error)}`)
    }
  }
}

const ListSchema = Type.Object({ upstreams: Type.Array(UpstreamSchema, { maxItems: MOST_UPSTREAMS }) }, { additionalProperties: false })

const readList = createOptionsReader(ListSchema)

/**
 * Reads IDENTITY_UPSTREAMS_FILE: an array of upstreams, whose secrets are in files of their own.
 * @throws Error without the text of the file
 */
export function parseUpstreams (text: string, surroundings: UpstreamSurroundings): Upstream[] {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new Error('must be JSON')
  }
  if (!Array.isArray(given)) throw new Error('must be an array of upstreams')
  try {
    const { upstreams } = readList({ upstreams: given })
    const open = upstreams.find(({ clientSecret }) => clientSecret !== undefined)
    if (open !== undefined) throw new Error(`option upstreams: ${open.id}: clientSecret: must be in a file of its own, see clientSecretFile`)
    checkUpstreams(upstreams, surroundings)
    return upstreams
  } catch (error) {
    throw new Error(readMessage(error).replace(/^option upstreams[:.]? ?/, ''))
  }
}
