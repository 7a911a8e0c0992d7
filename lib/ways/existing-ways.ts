import type { UserRecord } from '../records/user.ts'
import { type CredentialRecord, type Way, findWay } from '../way.ts'
import type { Credentials, WayHolder } from './credentials.ts'
import type { WayPolicy } from './words.ts'

/** A way with its material. */
export interface HeldWay {
  id: string
  way: Way
  credential: CredentialRecord
}

/** Reads the ways of users with their material. A way whose material is missing counts as none. */
export function createExistingWays ({ credentials, policy }: { credentials: Pick<Credentials, 'find'>, policy: Pick<WayPolicy, 'findUpstream'> }) {
  async function get (user: WayHolder, id: string): Promise<HeldWay | null> {
    const way = findWay(user, id)
    const credential = way && await credentials.find(user.id, id, way)
    return way && credential ? { id, way: withUpstream(way, credential), credential } : null
  }

  /**
   * An identity that was imported before its upstream was configured is one of the upstream that has its issuer now. The record of an
   * earlier release does not name the issuer.
   */
  function withUpstream (way: Way, { material: { issuer } }: CredentialRecord): Way {
    if (way.kind !== 'upstream' || typeof issuer !== 'string') return way
    const upstream = way.upstream ?? policy.findUpstream(issuer)
    return { ...way, issuer, ...(upstream !== undefined && { upstream }) }
  }

  async function list (user: WayHolder): Promise<HeldWay[]> {
    const found = await Promise.all(Object.keys(user.ways ?? {}).map((id) => get(user, id)))
    return found.filter((held) => held !== null)
  }

  /** The record without the ways whose material is missing: they count as none. */
  async function withExisting (user: UserRecord): Promise<UserRecord> {
    if (user.ways === undefined) return user
    return { ...user, ways: Object.fromEntries((await list(user)).map(({ id, way }) => [id, way])) }
  }

  return {
    /** One way of a user. Null when it does not exist. */
    get,

    /** The record with what the material says of identities. Ways whose material is missing stay, because the user has had them. */
    async withIssuers<T extends WayHolder> (user: T): Promise<T> {
      const { ways } = user
      if (ways === undefined || Object.values(ways).every(({ kind, issuer, upstream }) =>
        kind !== 'upstream' || (issuer !== undefined && upstream !== undefined))) return user
      return { ...user, ways: { ...ways, ...Object.fromEntries((await list(user)).map(({ id, way }) => [id, way])) } }
    },

    /** The ways of a user, in no order. */
    list,

    /** The record without the ways whose material is missing. */
    withExisting
  }
}

export type ExistingWays = ReturnType<typeof createExistingWays>
