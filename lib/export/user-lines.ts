import type { Base } from '../base.ts'
import { EXPORT_FORMAT, type Kept, type KeptLine, type KeptWay } from '../../schemas/export.ts'
import type { ImportLine } from '../../schemas/import.ts'
import type { UserRecord } from '../records/user.ts'
import { scan } from '../store/scan.ts'
import { toSeedContext } from '../ways/totp.ts'
import type { HeldWay } from '../ways/existing-ways.ts'
import type { WayService } from '../ways/ways.ts'

/** Where each field of a user's record is in a line: in a field of every line, in `kept` of a line with hashes, or nowhere, with the reason. */
export const LINE_FIELDS = {
  account: 'line',
  name: 'line',
  roles: 'line',
  info: 'line',
  attributes: 'line',
  expired_at: 'line',
  created_at: 'line',
  email: 'line',
  password: 'line',
  external: 'line',
  modified_at: 'kept',
  verified_at: 'kept',
  email_verified_at: 'kept',
  email_verified_by: 'kept',
  disabled_at: 'kept',
  invited_at: 'kept',
  invited_by: 'kept',
  language: 'kept',
  language_chosen: 'kept',
  enrol_ticket: 'kept',
  operator_password: 'kept',
  link_undone: 'kept',
  lost_identities: 'kept',
  expected_identities: 'kept',
  rejoined_at: 'kept',
  claimed_roles: 'kept',
  held_by: 'kept',
  ways: 'kept',
  imported_source: 'kept',
  imported_run: 'kept',
  imported_revision: 'kept',
  imported_lazy: { leftOut: 'The old system is that of this service.' },
  external_keys: { leftOut: 'Made of external.' },
  password_scheme: { leftOut: 'Made of the password.' },
  way_keys: { leftOut: 'Made of the ways.' },
  has_factor: { leftOut: 'Made of the ways.' },
  upstreams: { leftOut: 'Made of the ways.' },
  roles_at: { leftOut: 'Made of claimed_roles.' },
  addresses: { leftOut: 'Made of the account and the address.' },
  administers: { leftOut: 'Made of the roles.' },
  words: { leftOut: 'Made of the names.' },
  undos: { leftOut: 'Their links are not moved.' },
  address_changes: { leftOut: 'Their links are not moved.' },
  first_factors: { leftOut: 'Their links are not moved.' },
  support_unlocks: { leftOut: 'A count of one day.' },
  epoch: { leftOut: 'Tokens are not moved.' },
  epoch_at: { leftOut: 'Tokens are not moved.' },
  link_epoch: { leftOut: 'Links are not moved.' },
  revision: { leftOut: 'Begins again.' },
  bootstrap: { leftOut: 'The other service has its own first administrator.' }
} as const satisfies Record<Exclude<keyof UserRecord, 'id'>, 'line' | 'kept' | { leftOut: string }>

type KeptField = { [Field in keyof typeof LINE_FIELDS]: typeof LINE_FIELDS[Field] extends 'kept' ? Field : never }[keyof typeof LINE_FIELDS]

type SameField = Exclude<KeptField, 'ways' | 'imported_source' | 'imported_run' | 'imported_revision'>

/** The fields of `kept` that are those of the record. */
const SAME_FIELDS = Object.entries(LINE_FIELDS).flatMap(([field, place]) => place === 'kept' && !/^(ways|imported_)/.test(field) ? [field as SameField] : [])

/** The same order in every service. */
const compareWays = (one: HeldWay, other: HeldWay): number => `${one.way.at} ${one.id}` < `${other.way.at} ${other.id}` ? -1 : 1

const isFilled = (value: object): boolean => Object.keys(value).length > 0

/** The person as any system may read them. The fields are always in the same order, so that the same person is the same line. */
function toLine (user: UserRecord): ImportLine {
  const { id, external, account, email, email_verified_at, name, roles, info, attributes = {}, disabled_at, expired_at, created_at } = user
  return {
    id,
    external,
    account,
    email,
    email_verified: email_verified_at === undefined ? undefined : true,
    name: name !== '' ? name : undefined,
    roles: isFilled(roles) ? roles : undefined,
    info: isFilled(info) ? info : undefined,
    attributes: isFilled(attributes) ? attributes : undefined,
    disabled: disabled_at === undefined ? undefined : true,
    expired_at,
    created_at
  }
}

/** A line without hashes: the person, with their identities at other providers. */
function toPlainLine (user: UserRecord, held: readonly HeldWay[]): ImportLine {
  const identities = held.flatMap(({ way: { kind }, credential: { material: { issuer, subject } } }) =>
    kind === 'upstream' && typeof issuer === 'string' && typeof subject === 'string' ? [{ issuer, subject }] : [])
  return { ...toLine(user), identities: identities.length > 0 ? identities : undefined }
}

/** Where an import brought the person from, and whether nobody has changed them since. */
function showImported ({ imported_source: source, imported_run: run, imported_revision, revision }: UserRecord): Pick<Kept, 'imported'> {
  return source === undefined || run === undefined ? {} : { imported: { source, run, untouched: imported_revision === revision } }
}

/** Writes users as lines, for another service (docs/export.md). */
export function createUserLines ({ store, ways, box, recorder }: Base & { ways: Pick<WayService, 'list'> }) {
  const users = store.collection<UserRecord>('users')

  /** The key of a seed, and what is sealed, belong to this service's secret key, so the other service makes its own. */
  function toWay ({ id, way: { kind, key, issuer: _issuer, ...way }, credential: { material, sealed, name, created_at, last_used_at } }: HeldWay): KeptWay {
    const secret = sealed === undefined ? undefined : box.open(sealed, toSeedContext(id))
    return {
      id,
      kind,
      key: key !== undefined && kind !== 'totp' ? key : undefined,
      ...way,
      name,
      material,
      ...(kind === 'recovery' ? { codes_key: secret } : { seed: secret }),
      created_at,
      last_used_at
    }
  }

  function toKeptLine (user: UserRecord, held: readonly HeldWay[]): KeptLine {
    const { password, modified_at } = user
    const fields = Object.fromEntries(SAME_FIELDS.filter((field) => user[field] !== undefined).map((field) => [field, user[field]]))
    const line = { format: EXPORT_FORMAT, ...toLine(user), password: password ? { hash: password } : undefined } as const
    return { ...line, kept: { modified_at, ...fields, ...showImported(user), ways: held.length > 0 ? held.map(toWay) : undefined } }
  }

  async function toText (user: UserRecord, withHashes: boolean): Promise<string> {
    const held = user.ways === undefined ? [] : (await ways.list(user)).sort(compareWays)
    return `${JSON.stringify(withHashes ? toKeptLine(user, held) : toPlainLine(user, held))}\n`
  }

  return {
    /** The line of one user, with what proves who they are. */
    describe: async (user: UserRecord): Promise<string> => await toText(user, true),

    /**
     * The lines of all users, by their ids. Users who are created during the export may be missing.
     * @param options.withHashes with everything that proves who they are, for a file that is sealed
     */
    async * write ({ withHashes = false } = {}): AsyncGenerator<string[]> {
      await recorder.insert({ type: 'users.exported', id: withHashes ? 'with-hashes' : 'without-hashes' })
      for await (const batch of scan(users, {})) yield await Promise.all(batch.map(async (user) => await toText(user, withHashes)))
    }
  }
}

export type UserLines = ReturnType<typeof createUserLines>
