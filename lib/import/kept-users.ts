import { defined } from '../defined.ts'
import { paramError } from '../errors.ts'
import { type UserRecord, listAddresses } from '../records/user.ts'
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

/** The material of the ways of a line, under the same ids as in the other service. */
function createMaterial (
  user_id: string, { kept: { ways = [] } }: CheckedKeptLine, { box, seedKey }: NewUserParts
): { ways: Ways, credentials: CredentialRecord[] } {
  const toSealed = (id: string, secret: string | undefined) => secret === undefined ? undefined : box.seal(secret, toSeedContext(id))
  const credentials = ways.map((
    { id, kind, at: _at, key, uv, rk, rp, upstream, name, material, seed, codes_key, created_at, last_used_at }
  ): CredentialRecord => (defined({
    id,
    user_id,
    way: defined({
      kind,
      ...(seed !== undefined ? { key: toSeedKey(seed, seedKey) } : key !== undefined && { key }),
      uv,
      rk,
      rp,
      upstream,
      issuer: kind === 'upstream' && 'issuer' in material ? String(material.issuer) : undefined
    }),
    material,
    sealed: toSealed(id, seed ?? codes_key),
    name,
    created_at,
    last_used_at,
    revision: 0
  })))
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
    user: defined({
      ...user,
      email,
      addresses: addresses.length > 0 ? addresses : undefined,
      ...fields,
      ...(fields.claimed_roles && toRoleFields(fields.claimed_roles)),
      ...(imported !== undefined && defined({
        imported_source: imported.source, imported_run: imported.run, imported_revision: imported.untouched ? 0 : undefined
      })),
      ...toWayFields(ways).set
    }),
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
      const previous = await credentials.get(credential.id)
      const owner = earlier?.find('credential', credential.id)?.id ?? previous?.user_id ?? credential.user_id
      if (owner !== credential.user_id) throw new Refused('kept.ways', 'has the id of a way of another user')
      revised.push(previous === null ? credential : { ...credential, revision: previous.revision + 1 })
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
