import { hash } from 'node:crypto'
import type { Document, Json } from './store/port.ts'
import type { Proof } from './proofs.ts'

/** The id of the password among the ways of a person, for proofs. The other ids are random. */
export const PASSWORD = 'password'

export type WayKind = Exclude<Proof['kind'], 'password'>

/** A way of a person to prove who they are, as their record names it: only what never changes after the enrolment. */
export type Way = {
  kind: WayKind
  /**
   * Of a passkey and of an identity at an upstream, see toWayKey; of an imported authenticator app, a keyed hash of its seed. No two users
   * have the same one.
   */
  key?: string
  /** The time of the enrolment: ISO 8601. */
  at: string
  /** Whether a passkey verified the user at the enrolment. */
  uv?: boolean
  /**
   * False for a passkey that its device finds only by its id (WebAuthn, 10.1.3: not discoverable): no sign-in begins with it. Absent: one does,
   * or the browser has not said.
   */
  rk?: boolean
  /** The relying party of a passkey: a host. */
  rp?: string
  /** The id of the upstream. */
  upstream?: string
  /** The issuer of an identity. Absent on records of earlier releases: the material has it. */
  issuer?: string
}

/** The ways that a user's record names, by the id of their credential. */
export type Ways = { [id: string]: Way }

/** A way that a user's record names. Undefined for any other id, also for one that every object has, such as `constructor`. */
export function findWay ({ ways = {} }: { readonly ways?: Readonly<Ways> | undefined }, id: string | undefined): Way | undefined {
  return id !== undefined && Object.hasOwn(ways, id) ? ways[id] : undefined
}

/** The most ways of each kind. */
export const MOST_WAYS: Readonly<Record<WayKind, number>> = { passkey: 10, totp: 3, upstream: 10, recovery: 1 }

/** The material of a way. It is dead unless the record of its user names it; then it is changed here only. */
export interface CredentialRecord extends Document {
  user_id: string
  /** The way as the user's record names it, but for the time. */
  way: Omit<Way, 'at'>
  /** What the step of its kind needs: a public key and a counter, the last step of an authenticator app, salted hashes of codes. */
  material: { [field: string]: Json }
  /** The sealed seed of an authenticator app, or the sealed key of recovery codes (lib/crypto/secrets.ts). */
  sealed?: string
  /** The person's name for it. */
  name?: string
  created_at: string
  /** Written at most once an hour. */
  last_used_at?: string
  /** Incremented by every write, so that of two uses of a code or a step one wins. */
  revision: number
}

/** The key by which a sign-in that begins with a passkey or with an identity finds its user. */
export function toWayKey (...parts: ['passkey', credentialId: string] | ['upstream', issuer: string, subject: string]): string {
  return hash('sha256', parts.join('\0'), 'base64url')
}

/** The key of a session at a provider: of its issuer and the `sid` of its ID tokens. */
export function toSessionKey (issuer: string, sid: string): string {
  return hash('sha256', ['upstream session', issuer, sid].join('\0'), 'base64url')
}

/** The keys of ways, for the index that keeps them unique among all users. */
export function listKeys (ways: Ways): string[] {
  return [...new Set(Object.values(ways).map(({ key }) => key).filter((key) => key !== undefined))]
}

/** The ids of the upstreams of identities, as a text in which each has a space before and after it. No id has one. */
export function listUpstreamIds (ways: Ways): string | undefined {
  const ids = new Set(Object.values(ways).map(({ upstream }) => upstream).filter((id) => id !== undefined))
  return ids.size === 0 ? undefined : ` ${[...ids].sort().join(' ')} `
}

/** The conditions for users with an identity of an upstream. The first one keeps the index to those who have any. */
export const toUpstreamFilter = (id: string): { since: { upstreams: string }, contains: { upstreams: string } } => (
  { since: { upstreams: ' ' }, contains: { upstreams: ` ${id} ` } })
