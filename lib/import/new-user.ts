import type { KeyObject } from 'node:crypto'
import { toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { generateId } from '../ids.ts'
import { type UserRecord, createUserRecord } from '../records/user.ts'
import { proveAddress } from '../user-changes/address-proof.ts'
import { type CredentialRecord, type Ways, toWayKey } from '../way.ts'
import { findStep, toSeedContext } from '../ways/totp.ts'
import { toWayFields } from '../ways/words.ts'
import type { CheckedLine } from './check-line.ts'
import { toExternalKey, toSeedKey } from './keys.ts'

export interface NewUserParts {
  source: string
  run: string
  now: number
  box: Pick<SecretBox, 'seal'>
  /** The key of the hashes of seeds. */
  seedKey: KeyObject
  /** The upstream with this issuer, if there is one. */
  findUpstream: (issuer: string) => string | undefined
  /** Whether somebody without a password and an identity is marked for the former system. */
  lazy?: boolean | undefined
}

/** The keys by which no two users share an id in another system. */
export const listExternalKeys = (external: CheckedLine['external']): string[] => Object.entries(external).map(([source, id]) => toExternalKey(source, id))

/**
 * The ways of a line with their material. A code of an authenticator app counts from the step after that of the import, because an
 * earlier one may have been used in the other system.
 */
export function createWaysOf (
  user_id: string, { seeds, identities }: Pick<CheckedLine, 'seeds' | 'identities'>, { now, box, seedKey, findUpstream }: NewUserParts
): { ways: Ways, credentials: CredentialRecord[] } {
  const created_at = toTimestamp(now)
  const shared = { user_id, created_at, revision: 0 }
  const apps = seeds.map((seed): CredentialRecord => {
    const id = generateId(now)
    return { ...shared, id, way: { kind: 'totp', key: toSeedKey(seed, seedKey) }, material: { step: findStep(now) }, sealed: box.seal(seed, toSeedContext(id)) }
  })
  const known = new Map(identities.map((identity) => [toWayKey('upstream', identity.issuer, identity.subject), identity]))
  const links = [...known].map(([key, { issuer, subject }]): CredentialRecord => {
    const upstream = findUpstream(issuer)
    return {
      ...shared,
      id: generateId(now),
      way: { kind: 'upstream', key, issuer, ...(upstream !== undefined && { upstream }) },
      material: { issuer, subject }
    }
  })
  const credentials = [...apps, ...links]
  return { ways: Object.fromEntries(credentials.map(({ id, way }) => [id, { ...way, at: created_at }])), credentials }
}

/** The record and the material of a person who is not here yet. */
export function createImported (line: CheckedLine, parts: NewUserParts, form: string | undefined): { user: UserRecord, credentials: CredentialRecord[] } {
  const { source, run, now, lazy } = parts
  const { external, account, email, name = '', roles, info = {}, attributes, disabled, expired_at, created_at, password } = line
  const time = toTimestamp(now)
  const id = line.id ?? generateId(now)
  const { ways, credentials } = createWaysOf(id, line, parts)
  const keys = listExternalKeys(external)
  const user: UserRecord = {
    ...createUserRecord(now, {
      id,
      account,
      roles,
      name,
      info,
      ...(attributes !== undefined && { attributes }),
      ...(expired_at !== undefined && { expired_at }),
      ...(email !== undefined && proveAddress(email, 'import', now)),
      ...(password !== undefined && { password: password.stored }),
      ...(form !== undefined && { password_scheme: form }),
      ...(disabled && { disabled_at: time }),
      ...(keys.length > 0 && { external, external_keys: keys }),
      ...toWayFields(ways).set,
      imported_source: source,
      imported_run: run,
      imported_revision: 0,
      ...(lazy === true && password === undefined && line.identities.length === 0 && { imported_lazy: true })
    }),
    ...(created_at !== undefined && { created_at }),
    // Tokens of an earlier user with this id are of an earlier epoch.
    ...(line.id !== undefined && { epoch: Math.floor(now / 1000) })
  }
  return { user, credentials }
}
