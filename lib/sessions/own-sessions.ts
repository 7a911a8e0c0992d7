import { createBrowsers } from '../browsers/browsers.ts'
import type { Authorizations, SignInSessionRecord } from '../browsers/record.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { toDocumentHost } from '../client-documents/ids.ts'
import { IdentityError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import { mapBatches } from '../lists/cursor.ts'
import { scan } from '../store/scan.ts'
import { type ClientRecord, isVouchedFor } from '../records/client.ts'
import type { GrantRecord } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import { readRegistry } from '../resources/registry.ts'
import type { Device } from '../device.ts'
import { findBeginning } from '../proofs.ts'
import type { Store } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { checkValidity } from '../tokens/validity.ts'

/** The number of entries in each list: the most recently used ones. */
const SHOWN = 100

/** A browser in which the user is signed in. */
interface OwnBrowser {
  uid: string
  place: Device
  signed_in_at: string
  last_used_at: string
  /** When the console was last used there. Absent: it was not entered. */
  console_used_at?: string
}

/** A token session of the user. */
interface OwnTokenSession {
  session_id: string
  client: { client_id: string, name: string }
  /** The place of the sign-in. Absent: the session was not created in a browser. */
  place?: Device
  created_at: string
  last_used_at: string
  /** The browser session whose sign-out also ends this session. Absent: none. */
  session_uid?: string
}

/** An app that may act for the user. */
interface OwnApp {
  client: { client_id: string, name: string }
  /** Of a client from a document: the host of its id, and where it sends people. */
  host?: string
  redirect_uri?: string
  vouched: boolean
  scopes: string[]
  /** The URIs of the resources where it may use the user's roles. `scopes` then has `roles` only if another session has it without a resource. */
  roles_at: string[]
  /** The creation time of its oldest token session. */
  connected_at: string
  last_used_at: string
}

/** A sign-in session of the user, with the ids of the clients that they signed in to there. */
interface OwnSignIn extends Omit<OwnBrowser, 'uid'> {
  expires_at: string
  clients: string[]
}

/** What a client may do for the user, by one of its token sessions. */
interface OwnConsent {
  session_id: string
  client_id: string
  client_name: string
  scopes: string[]
  /** The URIs of the resources that it may use with them. */
  resources: string[]
  place?: Device
  created_at: string
  last_used_at: string
  expires_at: string
}

/** The scopes of a token session for these resources. At a resource, the scope `roles` is power there. */
function splitRoles (scopes: string[], resources: string[]): Pick<OwnApp, 'scopes' | 'roles_at'> {
  if (resources.length === 0 || !scopes.includes('roles')) return { scopes, roles_at: [] }
  return { scopes: scopes.filter((scope) => scope !== 'roles'), roles_at: resources }
}

/** A list, and the number of entries that it omits. */
interface Shown<T> { entries: T[], more: number }

const byLastUse = (one: { last_used_at: string }, other: { last_used_at: string }) => other.last_used_at < one.last_used_at ? -1 : 1

function show<T extends { last_used_at: string }> (all: T[]): Shown<T> {
  return { entries: all.sort(byLastUse).slice(0, SHOWN), more: Math.max(0, all.length - SHOWN) }
}

function notFound (what: string): IdentityError {
  return new IdentityError('ErrNotFound', `${what}: no such session of the user`)
}

/** Lets users see and end their own browser sessions, token sessions and connected apps. */
export function createOwnSessions ({ store, now, tokens, recorder, authorizations }: {
  store: Store, now: Clock, tokens: Tokens, recorder: Recorder, authorizations: Authorizations
}) {
  const users = store.collection<UserRecord>('users')
  const clients = store.collection<ClientRecord>('clients')
  const grants = store.collection<GrantRecord>('grants')
  const browsers = createBrowsers(store)

  /** The valid token sessions of a user, with their clients. */
  async function * scanGrants (user_id: string): AsyncIterable<{ grant: GrantRecord, client: ClientRecord }[]> {
    const user = await users.get(user_id)
    const registry = await readRegistry(store)
    const time = toTimestamp(now())
    for await (const batch of scan(grants, { equal: { user_id } }, { urgent: true })) {
      const ids = [...new Set(batch.map(({ client_id }) => client_id))]
      const found = new Map(await Promise.all(ids.map(async (id) => [id, await clients.get(id)] as const)))
      yield batch.flatMap((grant) => {
        const linked = { user_id: user, client_id: found.get(grant.client_id) ?? null, registry_id: registry }
        const client = checkValidity({ document: grant, linked }, time)?.client
        return client === undefined || client === null ? [] : [{ grant, client }]
      })
    }
  }

  /** Keeps only the entries to be shown in memory while a user's sessions are read. */
  async function collect<T extends { last_used_at: string }> (batches: AsyncIterable<T[]>): Promise<Shown<T>> {
    let shown: Shown<T> = { entries: [], more: 0 }
    for await (const batch of batches) {
      const { entries, more } = show([...shown.entries, ...batch])
      shown = { entries, more: shown.more + more }
    }
    return shown
  }

  /** The valid sign-in sessions of a user. */
  async function * scanSignIns (user_id: string): AsyncIterable<SignInSessionRecord[]> {
    const user = await users.get(user_id)
    const time = toTimestamp(now())
    for await (const batch of browsers.readOf(user_id)) {
      yield batch.filter((document) => checkValidity({ document, linked: { user_id: user } }, time) !== null)
    }
  }

  const showBrowser = (
    { uid, created_at, place = {}, signed_in_at = created_at, proofs, last_used_at = created_at, console_at }: SignInSessionRecord
  ): OwnBrowser => ({
    uid,
    place,
    signed_in_at: proofs === undefined ? signed_in_at : findBeginning(proofs),
    last_used_at,
    ...(console_at !== undefined && { console_used_at: console_at })
  })

  return {
    /** All sign-in sessions of the user, each with the clients that they signed in to there, for their own data. */
    readBrowsers: (user_id: string): AsyncIterable<OwnSignIn[]> => mapBatches(scanSignIns(user_id), (session) => {
      const { uid: _uid, ...browser } = showBrowser(session)
      return { ...browser, expires_at: session.expired_at, clients: authorizations.list(session).map(([client_id]) => client_id) }
    }),

    /** All token sessions of the user, each with what its client was given, for their own data. */
    readTokenSessions: (user_id: string): AsyncIterable<OwnConsent[]> => mapBatches(scanGrants(user_id), ({ grant, client }) => ({
      session_id: grant.id,
      client_id: client.id,
      client_name: client.name,
      scopes: grant.scopes ?? client.scopes,
      resources: authorizations.listResources(grant),
      ...(grant.place !== undefined && { place: grant.place }),
      created_at: grant.created_at,
      last_used_at: grant.last_used_at,
      expires_at: grant.expired_at
    })),

    /** The browsers in which the user is signed in. */
    async listBrowsers (user_id: string): Promise<Shown<OwnBrowser>> {
      const { entries, more } = await collect(mapBatches(scanSignIns(user_id), showBrowser))
      // Two tabs that sign in at the same time create two records with the same uid.
      return { entries: [...new Map(entries.toReversed().map((entry) => [entry.uid, entry])).values()].toReversed(), more }
    },

    /** The user's token sessions. */
    async listTokenSessions (user_id: string): Promise<Shown<OwnTokenSession>> {
      async function * read () {
        for await (const batch of scanGrants(user_id)) {
          yield batch.map(({ grant, client }): OwnTokenSession => ({
            session_id: grant.id,
            client: { client_id: client.id, name: client.name },
            created_at: grant.created_at,
            last_used_at: grant.last_used_at,
            ...(grant.place !== undefined && { place: grant.place }),
            ...(grant.bound === true && grant.session_uid !== undefined && { session_uid: grant.session_uid })
          }))
        }
      }
      return await collect(read())
    },

    /** The apps that may act for the user, each with the scopes of all its token sessions. */
    async listApps (user_id: string): Promise<Shown<OwnApp>> {
      const apps = new Map<string, OwnApp>()
      for await (const batch of scanGrants(user_id)) {
        for (const { grant, client } of batch) {
          const { created_at, last_used_at } = grant
          const { scopes, roles_at } = splitRoles(grant.scopes ?? client.scopes, authorizations.listResources(grant))
          const app = apps.get(client.id)
          apps.set(client.id, {
            client: { client_id: client.id, name: client.name },
            ...(client.document !== undefined && {
              host: toDocumentHost(client.id), ...(client.redirectUris[0] !== undefined && { redirect_uri: client.redirectUris[0] })
            }),
            vouched: isVouchedFor(client),
            scopes: [...new Set([...app?.scopes ?? [], ...scopes])],
            roles_at: [...new Set([...app?.roles_at ?? [], ...roles_at])],
            connected_at: app === undefined || created_at < app.connected_at ? created_at : app.connected_at,
            last_used_at: app === undefined || last_used_at > app.last_used_at ? last_used_at : app.last_used_at
          })
        }
      }
      return show([...apps.values()])
    },

    /**
     * Signs the user out of a browser, and ends the token sessions that are bound to it.
     * @throws ErrNotFound, for another user's browser too
     */
    async endBrowser (user_id: string, uid: string): Promise<void> {
      if (!await tokens.isSignedIn(user_id, uid)) throw notFound('browser')
      await tokens.endSignIn(uid)
    },

    /**
     * Ends a token session.
     * @throws ErrNotFound, for another user's too
     */
    async endTokenSession (user_id: string, session_id: string): Promise<void> {
      if ((await grants.get(session_id))?.user_id !== user_id) throw notFound('session')
      await tokens.endGrant(session_id)
    },

    /** Ends all of the user's token sessions of an app, which must then ask for consent again. Also succeeds when there are none. */
    async disconnect (user_id: string, client_id: string): Promise<void> {
      let connected = await authorizations.forget(user_id, client_id)
      for await (const batch of scan(grants, { equal: { user_id, client_id } }, { urgent: true })) {
        for (const { id } of batch) await tokens.endGrant(id)
        connected ||= batch.length > 0
      }
      if (connected) await recorder.insert({ type: 'app.disconnected', id: client_id, user_id })
    }
  }
}

export type OwnSessions = ReturnType<typeof createOwnSessions>
