import type * as Otpauth from 'otpauth'
import { Lazy } from '../lazy.ts'

/** Bytes of a seed, as many as HMAC-SHA-1 puts out (RFC 4226, 4). */
const SEED_BYTES = 20

/** Seconds of a time step, and digits of a code. Authenticator apps ignore other values, so these are the only ones. */
const PERIOD = 30
const DIGITS = 6

/** Steps before and after the present one whose codes count, for clocks that differ (RFC 6238, 5.2). */
const WINDOW = 1

/** Steps before and after the present one whose codes say that a clock is wrong. */
const OTHER = 30

// Loaded when somebody enrols or types a code.
const library = new Lazy(async () => await import('otpauth'))

/** The context under which the secret of a credential is sealed: the seed of an app, the key of backup codes. */
export const toSeedContext = (id: string): string => `credential ${id}`

function open ({ TOTP, Secret }: typeof Otpauth, seed: string) {
  return new TOTP({ algorithm: 'SHA1', digits: DIGITS, period: PERIOD, secret: Secret.fromBase32(seed) })
}

/** The time step of a time: milliseconds since 1970. */
export const findStep = (time: number): number => Math.floor(time / 1000 / PERIOD)

/** @returns a random seed, in base32 */
export async function createSeed (): Promise<string> {
  const { Secret } = await library.get()
  return new Secret({ size: SEED_BYTES }).base32
}

/** The URI for authenticator apps, which a QR code shows. */
export async function toSeedUri (seed: string, issuer: string, account: string): Promise<string> {
  const { TOTP, Secret } = await library.get()
  return new TOTP({ issuer, label: account, algorithm: 'SHA1', digits: DIGITS, period: PERIOD, secret: Secret.fromBase32(seed) }).toString()
}

/**
 * The time step of a code. Null when the code is of no step near `time`.
 * @param time milliseconds since 1970
 */
export async function findCodeStep (seed: string, code: string, time: number): Promise<number | null> {
  if (!/^\d{6}$/.test(code)) return null
  const delta = open(await library.get(), seed).validate({ token: code, timestamp: time, window: WINDOW })
  return delta === null ? null : findStep(time) + delta
}

/** Whether a code is right for another time than `time`, at most a quarter of an hour away: then the clock of a device is wrong. */
export async function isOfOtherTime (seed: string, code: string, time: number): Promise<boolean> {
  if (!/^\d{6}$/.test(code)) return false
  const delta = open(await library.get(), seed).validate({ token: code, timestamp: time, window: OTHER })
  return delta !== null && Math.abs(delta) > WINDOW
}

/** The code of a time, for the testing kit. */
export async function generateCode (seed: string, time: number): Promise<string> {
  return open(await library.get(), seed).generate({ timestamp: time })
}
