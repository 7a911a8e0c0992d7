import { createHmac, hash, randomBytes } from 'node:crypto'
import type { Turn } from '../fair-queue.ts'
import type { CredentialRecord } from '../way.ts'
import type { HeldWay } from './existing-ways.ts'

/** Codes of one set. */
const CODES = 10

/** Characters of a code: 60 bits. Codes of earlier releases have twice as many, so that a plain hash protects them. */
const LENGTH = 12
const FORMER_LENGTH = 2 * LENGTH

/** Crockford's base32: no letter looks like a digit. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

const GROUP = 4

/** Bytes of the salt of a set, as many as bcrypt takes, and of its key. */
const SALT_BYTES = 16
const KEY_BYTES = 32

/** The least cost of bcrypt, and the most that a set of another service may have: a second for a try. */
const COSTS = [4, 14] as const

/** Hashes texts as slowly as passwords, in the threads and the queue of passwords (lib/users/passwords.ts). */
export interface SlowHash {
  /** The cost of new hashes of random codes. */
  readonly codeCost: number
  /**
   * Hashes each text with the same salt.
   * @param salt 16 bytes as base64url
   * @throws ErrBusy when it would wait too long
   */
  stretch (texts: readonly string[], salt: Readonly<{ salt: string, cost: number }>, turn?: Turn): Promise<string[]>
}

/** A set of codes as it is stored. Without a salt it is of an earlier release: `hashes` are plain SHA-256 of long codes. */
export type CodeSet = { hashes: string[], salt?: string, cost?: number }

export const readCodeSet = ({ material }: Pick<CredentialRecord, 'material'>): CodeSet => material as CodeSet

/** The number of recovery codes that are left among the ways of a user. */
export function countCodes (held: readonly HeldWay[]): number {
  const codes = held.find(({ way }) => way.kind === 'recovery')
  return codes === undefined ? 0 : readCodeSet(codes.credential).hashes.length
}

/** Whether a value is a set that can be checked. A high cost would let a file of another service hold up the threads. */
export function isCodeSet (value: { readonly [field: string]: unknown }): boolean {
  const { hashes, salt, cost } = value
  if (!Array.isArray(hashes) || !hashes.every((one) => typeof one === 'string')) return false
  if (salt === undefined) return cost === undefined
  const [least, most] = COSTS
  return typeof salt === 'string' && Buffer.from(salt, 'base64url').length === SALT_BYTES &&
    Number.isInteger(cost) && Number(cost) >= least && Number(cost) <= most
}

/** A random code. 256 is a multiple of 32, so that each character has five random bits. */
const createCode = (): string => Array.from(randomBytes(LENGTH), (byte) => ALPHABET.charAt(byte % ALPHABET.length)).join('')

/** As people read it: in groups. */
const toGroups = (code: string): string => code.replaceAll(new RegExp(`.{${GROUP}}(?=.)`, 'g'), '$&-')

/** A code as it is compared: people leave out hyphens, and type O for 0, and I or L for 1. */
function normalize (code: string): string {
  return code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
}

/** The stored value of a slow hash: without the key nobody can tell whether a code is of the set. */
const toValue = (slow: string, key: string): string => createHmac('sha256', Buffer.from(key, 'base64url')).update(slow).digest('base64url')

/**
 * A new set of codes. They are shown once.
 * @returns the codes, what the store has of them, and the key of the set, to be sealed
 */
export async function createCodes (slow: SlowHash, turn?: Turn): Promise<{ codes: string[], set: CodeSet, key: string }> {
  const codes = Array.from({ length: CODES }, createCode)
  const key = randomBytes(KEY_BYTES).toString('base64url')
  const salt = { salt: randomBytes(SALT_BYTES).toString('base64url'), cost: slow.codeCost }
  const stretched = await slow.stretch(codes, salt, turn)
  return { codes: codes.map(toGroups), set: { hashes: stretched.map((one) => toValue(one, key)), ...salt }, key }
}

/**
 * Computes what the store would have for a typed code: one slow hash, however many codes are left. What has not the length of a code costs none.
 * @returns the value, by the key of the set; null for what can be no code of it
 */
export async function findValue (
  { salt, cost = COSTS[0] }: CodeSet, typed: string, slow: Pick<SlowHash, 'stretch'>, turn?: Turn
): Promise<((key: () => string) => string) | null> {
  const code = normalize(typed)
  if (code.length !== (salt === undefined ? FORMER_LENGTH : LENGTH)) return null
  if (salt === undefined) {
    const value = hash('sha256', code, 'base64url')
    return () => value
  }
  const [stretched = ''] = await slow.stretch([code], { salt, cost }, turn)
  return (key) => toValue(stretched, key())
}
