import { toTimestamp } from './clock.ts'

/** What a person has proved with one of their ways. */
export type Proof = {
  /** The id of the way; `password` for the password. */
  way: string
  kind: 'password' | 'upstream' | 'passkey' | 'totp' | 'recovery'
  /** Whether a passkey has verified the user, by a PIN or a fingerprint for example. Absent: it has not. */
  uv?: boolean
  /** Whether the other provider says that both kinds were proved there, and the operator trusts it in this. Absent: it does not. */
  both?: boolean
  /** Of an identity at another provider: the key of the session there, see toSessionKey. Absent: the provider does not name it. */
  session?: string
  /** Of such an identity: when the person was sent there. Absent on proofs of earlier releases. ISO 8601. */
  asked_at?: string
  /** The claim by which it says so. The operator trusts it as long as the configuration does. */
  factor?: string
  /**
   * Whether the other provider has not said when: such a proof says who, and `at` is only the time of its answer. Absent: `at` is when the
   * person has proved it.
   */
  undated?: boolean
  /** ISO 8601. */
  at: string
}

/** What a link or another provider has proved, for a sign-in: at `at`, or now. */
export type Proved = { user_id: string, user_epoch: number } & Omit<Proof, 'at'> & Partial<Pick<Proof, 'at'>>

/** Milliseconds before the answer of another provider since when a proof counts at most. One without a time counts since then. */
export const OLDEST_PROOF = 24 * 60 * 60_000

/** The identity at another provider among proofs. A sign-in begins with one at most. */
export const findIdentityProof = (proofs: readonly Proof[]): Proof | undefined => proofs.find(({ kind }) => kind === 'upstream')

/**
 * Whether a sign-in has ended with a recovery code: the last proof is the newest. A code of an earlier sign-in, which a session still has, is
 * before what was added to it.
 */
export const endsWithCode = (proofs: readonly Proof[]): boolean => proofs.at(-1)?.kind === 'recovery'

/** From the weakest to the strongest: `1` for one kind of proof, `mfa` for both, `phr` for both with a passkey among them. */
export const ACRS = ['1', 'mfa', 'phr'] as const

export type Acr = typeof ACRS[number]

/** How a person has proved who they are, as tokens say it. */
export type Strength = {
  /** The methods (RFC 8176). An identity at another provider adds none. */
  amr: string[]
  acr: Acr
  /** The time of the oldest proof that the `acr` rests on: ISO 8601. */
  time: string
  /** The upstreams by which alone the sign-in has begun, by their ids. Absent: it began with something else too, or in an earlier release. */
  upstreams?: string[]
}

/**
 * The method of each kind of proof. For a passkey it is `pop`, the possession of a key that need not be in hardware (OpenID Connect EAP
 * ACR Values 1.0, 3): without an attestation, nobody knows where the key is.
 */
export const AMR: Readonly<Record<Proof['kind'], string | undefined>> = { password: 'pwd', upstream: undefined, passkey: 'pop', totp: 'otp', recovery: 'otp' }

const isPasskey = ({ kind }: Proof): boolean => kind === 'passkey'
const isVerified = (proof: Proof): boolean => isPasskey(proof) && proof.uv === true

/** What the person knows, or another provider says of them. A passkey that verified the user proves this kind too. */
const isFirstKind = (proof: Proof): boolean => proof.kind === 'password' || proof.kind === 'upstream' || isVerified(proof)

/** What the person has. */
const isSecondKind = ({ kind, both }: Proof): boolean => kind === 'passkey' || kind === 'totp' || kind === 'recovery' || (kind === 'upstream' && both === true)

/** The time since when a proof counts. */
const readTime = ({ at, undated }: Proof): string => undated === true ? toTimestamp(Date.parse(at) - OLDEST_PROOF) : at

/** The last of these proofs; undefined without one. */
function findLast (proofs: readonly Proof[], isKind: (proof: Proof) => boolean): Proof | undefined {
  let last: Proof | undefined
  for (const proof of proofs) if (isKind(proof) && (last === undefined || readTime(proof) > readTime(last))) last = proof
  return last
}

/**
 * The time since when there is a proof of each of two kinds; '' if one of them is missing. Where one says only who, the other says when.
 */
function findBoth (proofs: readonly Proof[], isOne: (proof: Proof) => boolean, isOther: (proof: Proof) => boolean): string {
  const found = [findLast(proofs, isOne), findLast(proofs, isOther)].filter((proof) => proof !== undefined)
  if (found.length < 2) return ''
  const dated = found.filter(({ undated }) => undated !== true)
  return (dated.length > 0 ? dated : found).map(readTime).sort()[0]!
}

/**
 * The strength that proofs of one person have together: the strongest `acr`, and of the proofs that give it the latest ones.
 * @throws Error without a proof
 */
export function toStrength (proofs: readonly Proof[]): Strength {
  if (proofs.length === 0) throw new Error('there is no proof')
  const methods = proofs.map(({ kind }) => AMR[kind]).filter((method) => method !== undefined)
  const phr = findBoth(proofs, isFirstKind, isPasskey)
  const mfa = findBoth(proofs, isFirstKind, isSecondKind)
  const [acr, time]: [Acr, string] = phr !== '' ? ['phr', phr] : mfa !== '' ? ['mfa', mfa] : ['1', readTime(findLast(proofs, () => true)!)]
  return { amr: [...new Set([...methods, ...(mfa !== '' ? ['mfa'] : [])])], acr, time }
}

/**
 * When a session with these proofs has begun, for its life and for its owner. An answer that does not say when it was proved is recent enough
 * for nothing, but it begins a session all the same, and that one is not a day old.
 * @throws Error without a proof
 */
export function findBeginning (proofs: readonly Proof[]): string {
  return toStrength(proofs.map(({ undated: _undated, ...proof }) => proof)).time
}

/** Whether a strength is at least the demanded one. */
export function reaches (strength: Pick<Strength, 'acr'>, acr: Acr): boolean {
  return ACRS.indexOf(strength.acr) >= ACRS.indexOf(acr)
}

/** The stronger of two values of `acr`. */
export const findStronger = (one: Acr, other: Acr = '1'): Acr => reaches({ acr: one }, other) ? one : other

/** What stands for a person's consent to an operation that a stolen token must not be enough for. */
export interface Evidence {
  /** An operator's unrestricted token, the command line, or a program: they need no proof. */
  isOperator: boolean
  /** The sign-in that the token comes from. */
  auth?: Readonly<Strength>
  /** What the person has proved with the request itself. */
  proofs: readonly Proof[]
  /** False for a request without a form or a body, which cannot bring a password. */
  mayType?: boolean
  /** When it was brought: milliseconds since 1970. */
  at: number
}
