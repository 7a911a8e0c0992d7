import type { Device } from '../device.ts'
import type { GrantRecord, Revocable } from '../records/token.ts'
import type { Json } from '../store/port.ts'
import type { Proof } from '../proofs.ts'
import { PASSWORD } from '../way.ts'

/** A browser's sign-in session. Its id is the hash of the cookie's value. */
export interface SignInSessionRecord extends Revocable {
  /** Stays the same for the life of the session, while the cookie's value changes. */
  uid: string
  created_at: string
  /** The time of the last sign-in: of the oldest proof that its strength rests on. */
  signed_in_at?: string
  /** What the user has proved in this browser. Absent on sessions of earlier releases: their users have a password only. */
  proofs?: Proof[]
  /** The key of the session at another provider that one of them came from. */
  upstream_sid?: string
  /** The time and the place of the last recorded use. */
  last_used_at?: string
  /** The time of the last recorded use of the console in this browser. Absent: it was not entered. */
  console_at?: string
  place?: Device
  /** The further fields of the authorization server, which only lib/oidc reads. */
  payload: { [key: string]: Json }
}

/** What a sign-in with a password has proved. */
export const provePassword = (at: string): Proof[] => [{ way: PASSWORD, kind: 'password', at }]

/** The proofs of a sign-in session. */
export function listProofs ({ proofs, signed_in_at, created_at }: SignInSessionRecord): Proof[] {
  return proofs ?? provePassword(signed_in_at ?? created_at)
}

/** The clients that users signed in to. The authorization server has them in the payloads of its records. */
export interface Authorizations {
  /** The clients that the user signed in to in this session, each with its last grant. */
  list (session: SignInSessionRecord): [client_id: string, grant_id: string][]
  /** The URIs of the resources that a token session is for. */
  listResources (grant: GrantRecord): string[]
  /** Makes a client ask for consent again, in all sessions of the user. Resolves to whether it had consent in any. */
  forget (user_id: string, client_id: string): Promise<boolean>
}
