import { paramError } from '../errors.ts'
import { type UserRecord, listAddresses } from '../records.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { toRoleFields } from '../upstreams/claimed-roles.ts'
import type { CredentialRecord, Ways } from '../way.ts'
import { toSeedContext } from '../ways/totp.ts'
import { toWayFields } from '../ways/words.ts'
import type { BringParts, Brought } from './bring.ts'
import { toSeedKey } from './keys.ts'
import type { CheckedKeptLine } from './kept-line.ts'
import { type NewUserParts, createImported } from './new-user.ts'
import { Refused } from './refused.ts'

/** The material of the ways of a line, under the same ids as in the former service. */
function createMaterial (user_id: string, { kept: { ways = [] } }: CheckedKeptLine, { box, seedKey }: NewUserParts): { ways: Ways, credentials: CredentialRecord[] } {
  const credentials = ways.map(({ id, kind, at: _at, key, uv, rk, rp, upstream, name, material, seed, created_at, last_used_at }): CredentialRecord => ({
    id,
    user_id,
    way: {
      kind,
      ...(seed !== undefined ? { key: toSeedKey(seed, seedKey) } : key !== undefined && { key }),
      ...(uv !== undefined && { uv }),
      ...(rk !== undefined && { rk }),
      ...(rp !== undefined && { rp }),
      ...(upstream !== undefined && { upstream }),
      ...(kind === 'upstream' && 'issuer' in material && { issuer: String(material.issuer) })
    },
    material,
    ...(seed !== undefined && { sealed: box.seal(seed, toSeedContext(id)) }),
    ...(name !== undefined && { name }),
    created_at,
    ...(last_used_at !== undefined && { last_used_at }),
    revision: 0
  }))
  return { ways: Object.fromEntries(credentials.map(({ id, way }, index) => [id, { ...way, at: ways[index]!.at }])), credentials }
}

/** The record of a user as it was, but for what belongs to the service: epoch, revision and what is made of other fields. */
function createKept (line: CheckedKeptLine, parts: NewUserParts, form: string | undefined): { user: UserRecord, credentials: CredentialRecord[] } {
  const { id, account, email, kept: { ways: _ways, imported, ...fields } } = line
  const { ways, credentials } = createMaterial(id, line, parts)
  const { email: _email, email_verified_at: _verified, email_verified_by: _by, verified_at: _at, disabled_at: _disabled, addresses: _addresses, imported_source: _source, imported_run: _run, imported_revision: _revision, ...user } =
    createImported({ ...line, seeds: [], identities: [] }, parts, form).user
  const addresses = listAddresses(account, email)
  return {
    user: {
      ...user,
      ...(email !== undefined && { email }),
      ...(addresses.length > 0 && { addresses }),
      ...fields,
      ...(fields.claimed_roles && toRoleFields(fields.claimed_roles)),
      ...(imported !== undefined && { imported_source: imported.source, imported_run: imported.run, ...(imported.untouched && { imported_revision: 0 }) }),
      ...toWayFields(ways).set
    },
    credentials
  }
}

/** Writes the people of an export of this service. They come into the store once, and no line changes anybody. */
export function createBringKept ({ people, remembered, formerImports, stored, credentials, options, earlier, register, toParts }: Omit<BringParts, 'roles'>) {
  const { source, onConflict = 'skip', dryRun = false, again } = options
  if (onConflict === 'update') throw paramError('on_conflict', 'a line of an export of this service changes nobody')

  function meet (known: UserRecord, { id, created_at, dropped }: CheckedKeptLine): Brought {
    if (known.created_at !== created_at) throw new Refused('id', 'is the id of another user')
    if (onConflict === 'fail') throw new Refused('id', 'is that of a user who is here already')
    return { result: 'same', user_id: id, dropped }
  }

  /** Material of a run that was interrupted is replaced, under the next revision, so that no sweep removes it. That of anybody else is not. */
  async function reviseMaterial (made: readonly CredentialRecord[]): Promise<CredentialRecord[]> {
    const revised: CredentialRecord[] = []
    for (const credential of made) {
      const former = await credentials.get(credential.id)
      const owner = earlier?.find('credential', credential.id)?.id ?? former?.user_id ?? credential.user_id
      if (owner !== credential.user_id) throw new Refused('kept.ways', 'has the id of a way of another user')
      revised.push(former === null ? credential : { ...credential, revision: former.revision + 1 })
    }
    return revised
  }

  /** @throws Refused */
  return async function bring (line: CheckedKeptLine): Promise<Brought> {
    const { id, dropped, password } = line
    const known = await people.getById(id)
    if (known !== null) return meet(known, line)
    await people.checkFree(line, { remembered, formerImports }, source, again)
    const form = password?.form
    const { user, credentials: made } = createKept(line, toParts(), form === undefined || dryRun ? form : await register(form))
    const clash = await people.findClash(user)
    if (clash !== null) throw clash
    const created: Brought = { result: 'created', user_id: id, dropped, isPasswordTaken: password !== undefined }
    const revised = await reviseMaterial(made)
    if (dryRun) {
      earlier?.add(user, true)
      return created
    }
    for (const credential of revised) await credentials.put(credential)
    try {
      await stored.insertUser(user, { type: 'user.created', id, granted: Object.keys(user.roles) }, () => new DuplicateKeyError('account'))
      return created
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
      const other = await people.getById(id)
      // Another process brings in the same file, and its user has the same ways.
      if (other !== null) return meet(other, line)
      await Promise.all(made.map((credential) => credentials.delete(credential.id)))
      throw await people.findClash(user) ?? new Refused('account', 'a user with this account or address exists')
    }
  }
}
