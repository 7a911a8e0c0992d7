import { isDeepStrictEqual } from 'node:util'
import { IMPORT_LIMITS, type ImportOptions, type ImportVerdict } from '../../schemas/import.ts'
import type { Decision } from '../change-record.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import type { UserRecord } from '../records/user.ts'
import { type RoleNames, holdsRole } from '../roles.ts'
import { type Collection, DuplicateKeyError, type Json } from '../store/port.ts'
import { listHappenings } from '../users/happenings.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { CredentialRecord } from '../way.ts'
import { toWayFields } from '../ways/words.ts'
import type { CheckedLine } from './check-line.ts'
import type { EarlierLines } from './earlier-lines.ts'
import { type NewUserParts, createImported, createWaysOf, listExternalKeys } from './new-user.ts'
import type { Memory, People } from './people.ts'
import { Refused, naming } from './refused.ts'
import type { Remembered } from './remembered.ts'

/** Attempts to write a person. One fails if a user was in the way who is removed by the time of the next look. */
const ATTEMPTS = 3

export interface BringParts extends Memory {
  people: People
  remembered: Pick<Remembered, 'has' | 'refresh'>
  stored: Pick<StoredUsers, 'insertUser' | 'changeUser'>
  credentials: Collection<CredentialRecord>
  roles: RoleNames
  options: ImportOptions
  /** Present in a dry run. */
  earlier?: Omit<EarlierLines, 'close'> | undefined
  /** The form that stands for that of a hash (lib/hashes/decoys.ts). */
  register: (form: string) => Promise<string>
  toParts: () => NewUserParts
}

export interface Brought extends Pick<ImportVerdict, 'result' | 'user_id' | 'dropped'> {
  /** Whether the person has the password of the line now. */
  isPasswordTaken?: boolean
}

/** The user was deleted meanwhile. */
class Gone extends Error {}

const isDuplicate = (error: unknown): boolean => error instanceof DuplicateKeyError
const isBusy = (error: unknown): boolean => error instanceof IdentityError && error.code === 'ErrBusy'

/** Fields that no import changes, and in which a person differs from their line. */
function listFixed ({ account, email, roles, disabled_at, expired_at }: UserRecord, line: CheckedLine): string[] {
  const differs: [string, boolean][] = [
    ['account', account !== line.account],
    ['email', line.email !== undefined && line.email !== email],
    ['roles', !isDeepStrictEqual(roles, line.roles)],
    ['disabled', (disabled_at !== undefined) !== line.disabled],
    ['expired_at', line.expired_at !== undefined && line.expired_at !== expired_at]
  ]
  return differs.filter(([, isDifferent]) => isDifferent).map(([field]) => field)
}

/** Whether nobody can sign in as this person, and nobody but an import has changed them since they were brought in. */
const hasNeverHadAny = ({ revision, imported_revision, password, ways }: UserRecord): boolean =>
  revision === imported_revision && !password && ways === undefined

/** The fields of a person that their line may change: never one by which they are known. One that lets somebody in only while nobody can sign in. */
function listChanged (user: UserRecord, { name, info, attributes, external, password, seeds, identities }: CheckedLine): string[] {
  const isOpen = hasNeverHadAny(user)
  const changes: [string, boolean][] = [
    ['name', name !== undefined && name !== user.name],
    ['info', info !== undefined && !isDeepStrictEqual(info, user.info)],
    ['attributes', attributes !== undefined && !isDeepStrictEqual(attributes, user.attributes ?? {})],
    ['external', Object.entries(external).some(([source, id]) => user.external?.[source] !== id)],
    ['password', isOpen && password !== undefined],
    ['totp', isOpen && seeds.length > 0],
    ['identities', isOpen && identities.length > 0]
  ]
  return changes.filter(([, isChanged]) => isChanged).map(([field]) => field)
}

/** Writes the people of checked lines: each by one write, which the unique indexes and the revision of the record decide about. */
export function createBring ({ people, remembered, formerImports, stored, credentials, roles, options, earlier, register, toParts }: BringParts) {
  const { source, dryRun = false, onConflict = 'skip', again } = options

  const drop = async (made: readonly CredentialRecord[]) => { await Promise.all(made.map(({ id }) => credentials.delete(id))) }

  /** The change of a person by their line, decided on the record that the write replaces. */
  function decide (record: UserRecord, line: CheckedLine, form: string | undefined, made: ReturnType<typeof createWaysOf>): Decision<UserRecord> {
    if (record.imported_source !== source) throw new Refused('id', 'is the id of a user whom this source has not brought in')
    if (Object.values(roles).some((role) => holdsRole(record.roles, role))) throw new Refused('roles', 'the user has a role whose holders no import changes')
    const changed = listChanged(record, line)
    const has = (field: string) => changed.includes(field)
    const external = { ...record.external, ...line.external }
    if (Object.keys(external).length > IMPORT_LIMITS.external) throw new Refused('external', `must have at most ${IMPORT_LIMITS.external} properties`)
    const isWays = has('totp') || has('identities')
    const set: { [field: string]: Json } = defined({
      name: has('name') ? line.name : undefined,
      info: has('info') ? line.info : undefined,
      attributes: has('attributes') ? line.attributes : undefined,
      ...(has('external') && { external, external_keys: listExternalKeys(external) }),
      ...(has('password') && defined({ password: line.password!.stored, password_scheme: form })),
      ...(isWays && toWayFields(made.ways, record).set),
      imported_revision: record.revision === record.imported_revision ? record.revision + 1 : undefined
    })
    return { set, increment: has('password') ? { epoch: 1 } : undefined, happened: listHappenings(record, { set }) }
  }

  /** @returns false when the user was deleted meanwhile */
  async function update (user: UserRecord, line: CheckedLine, made: ReturnType<typeof createWaysOf>): Promise<boolean> {
    const { password } = line
    const isWays = hasNeverHadAny(user) && made.credentials.length > 0
    const form = password?.form === undefined || !hasNeverHadAny(user) ? undefined : await register(password.form)
    if (isWays) await credentials.insertMany(made.credentials)
    try {
      const written = await stored.changeUser(user.id, (record) => decide(record, line, form, made), { notFound: () => new Gone() })
      if (isWays && !made.credentials.every(({ id }) => written.ways?.[id] !== undefined)) await drop(made.credentials)
      return true
    } catch (error) {
      // Of these nothing was written.
      if (isWays && (isDuplicate(error) || error instanceof Refused || error instanceof Gone || isBusy(error))) await drop(made.credentials)
      if (error instanceof Gone) return false
      if (error instanceof DuplicateKeyError) throw toClash(error)
      throw error
    }
  }

  const toClash = ({ field }: DuplicateKeyError): Refused => field === 'external_keys'
    ? new Refused('external', 'is an id of another user')
    : new Refused('identities', 'an identity or a seed is that of another user')

  /**
   * The person as their line would change them. The unique indexes decide about the write; of two keys that it shares with others, an engine
   * may name neither.
   * @throws Refused
   */
  async function foresee (user: UserRecord, line: CheckedLine, made: ReturnType<typeof createWaysOf>): Promise<UserRecord> {
    const { set } = decide(user, line, undefined, made)
    const clash = await people.findSharedKey({ ...set, id: user.id })
    if (clash !== null) throw clash
    return { ...user, ...set, revision: user.revision + 1 }
  }

  /** The person is here already. Null when they are gone by now. */
  async function meet (user: UserRecord, line: CheckedLine): Promise<Brought | null> {
    const fixed = listFixed(user, line)
    const changed = listChanged(user, line)
    const verdict = (result: 'same' | 'updated', dropped: string[]): Brought => ({ result, user_id: user.id, dropped: [...line.dropped, ...dropped] })
    if (onConflict === 'fail' && changed.length + fixed.length > 0) {
      throw new Refused([...changed, ...fixed][0], 'differs from that of the user who is here already')
    }
    if (onConflict !== 'update') return verdict('same', [...changed, ...fixed])
    if (changed.length === 0) return verdict('same', fixed)
    const made = createWaysOf(user.id, line, toParts())
    const foreseen = await foresee(user, line, made)
    if (dryRun) earlier?.add(foreseen, true)
    else if (!await update(user, line, made)) return null
    return { ...verdict('updated', fixed), isPasswordTaken: changed.includes('password') }
  }

  /** Creates a person. Null when somebody was in the way who is gone by now. */
  async function create (line: CheckedLine): Promise<Brought | null> {
    await people.checkFree(line, { remembered, formerImports }, source, again)
    const form = line.password?.form
    const { user, credentials: made } = createImported(line, toParts(), form === undefined || dryRun ? form : await register(form))
    const created: Brought = { result: 'created', user_id: user.id, dropped: line.dropped, isPasswordTaken: line.password !== undefined }
    if (dryRun) {
      const clash = await people.findClash(user)
      if (clash !== null) throw clash
      earlier?.add(user, line.id !== undefined)
      return created
    }
    if (made.length > 0) await credentials.insertMany(made)
    try {
      await stored.insertUser(user, { type: 'user.created', id: user.id, granted: Object.keys(user.roles) }, () => new DuplicateKeyError('account'))
      return created
    } catch (error) {
      if (!isDuplicate(error)) throw error
      await drop(made)
      // Somebody else may have brought the same person in meanwhile.
      const known = await people.find(line, source)
      if (known !== null) return await meet(known, line)
      const clash = await people.findClash(user)
      if (clash !== null) throw clash
      return null
    }
  }

  async function bring (line: CheckedLine): Promise<Brought> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const known = await people.find(line, source)
      const brought = known === null ? await create(line) : await meet(known, line)
      if (brought !== null) return brought
      // Also those who were deleted since the batch began.
      await remembered.refresh()
    }
    throw new IdentityError('ErrBusy', 'other requests are changing the user', { headers: { 'retry-after': '1' } })
  }

  async function bringWithFactors (line: CheckedLine): Promise<Brought> {
    try {
      return await bring(line)
    } catch (error) {
      const isShared = error instanceof Refused && error.field === 'totp'
      if (!isShared) throw error
      if (options.withoutFactors !== true) throw new Refused(error.field, `${error.reason}; ${naming('without-factors')} brings the person in without it`)
      return await bring({ ...line, seeds: [], dropped: [...line.dropped, 'totp'] })
    }
  }

  /**
   * Brings in the person of a line.
   * @throws Refused, ErrBusy
   */
  return async (line: CheckedLine): Promise<Brought> => {
    const { user_id, ...brought } = await bringWithFactors(line)
    return { ...brought, ...(user_id !== undefined && earlier?.isUnnamed(user_id) !== true && { user_id }) }
  }
}
