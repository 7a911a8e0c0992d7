import type { KoaContextWithOIDC } from 'oidc-provider'
import { type SignInSessionRecord, listProofs, provePassword } from '../browsers/record.ts'
import { toLifetime, toTimestamp } from '../clock.ts'
import { keepAddress } from '../events/address.ts'
import { nameCaller } from '../events/origin.ts'
import { scan } from '../store/scan.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { hashToken } from '../crypto/random-token.ts'
import { describeDevice } from '../device.ts'
import { type Proof, findBeginning, findIdentityProof, toStrength } from '../proofs.ts'
import { type SignIn, toOurs } from './context.ts'
import type { Login, Times } from './contract.ts'
import { type AdapterParts, type ModelAdapter, type Payload, toPayload, toStored } from './model-adapter.ts'

/** The sign-in sessions read for each request, by uid. oidc-provider drops the epoch from its own object. */
const read = new WeakMap<object, Map<string, SignInSessionRecord>>()

function remember (ctx: KoaContextWithOIDC, record: SignInSessionRecord): void {
  const byUid = read.get(ctx) ?? new Map<string, SignInSessionRecord>()
  read.set(ctx, byUid.set(record.uid, record))
}

/** The session of this request as it was read from the store; undefined when a user signs in with this request. */
export function findStoredSession (ctx: KoaContextWithOIDC): SignInSessionRecord | undefined {
  return read.get(ctx)?.get(ctx.oidc.session?.uid ?? '')
}

/** A sign-in that ends now, with what oidc-provider stores of it in the session, and then in codes, refresh tokens and ID tokens. */
export function completeLogin ({ accountId, user_epoch, proofs: given }: Login, times: Times): SignIn {
  const proofs = given ?? provePassword(toTimestamp(times.now()))
  const { acr, amr, time: signed_in_at } = toStrength(proofs)
  return { accountId, user_epoch, proofs, acr, amr, ts: times.toEpoch(signed_in_at), signed_in_at }
}

/** The sign-in of this request. Undefined when the user was signed in before. */
const findSignIn = (ctx: KoaContextWithOIDC) => toOurs(ctx).result?.login

/**
 * The user's epoch at the sign-in, in this request or earlier in this browser. It is not the user's current epoch: a password
 * change since then must invalidate this sign-in.
 */
export function requireUserEpoch (ctx: KoaContextWithOIDC): number {
  const epoch = findSignIn(ctx)?.user_epoch ?? findStoredSession(ctx)?.user_epoch
  if (epoch === undefined) throw new Error('the request has no sign-in session with an epoch')
  return epoch
}

/** What the user has proved, in this request or earlier in this browser. */
export function requireProofs (ctx: KoaContextWithOIDC): Proof[] {
  const [signIn, stored] = [findSignIn(ctx), findStoredSession(ctx)]
  if (signIn !== undefined) return signIn.proofs ?? provePassword(signIn.signed_in_at)
  if (stored === undefined) throw new Error('the request has no sign-in session')
  return listProofs(stored)
}

/** The sign-out by this request: of the whole session, or of one client. Undefined for any other request. */
function findSignOut (ctx: KoaContextWithOIDC | undefined): { uid: string, client_id?: string } | undefined {
  const { route, session, params, entities } = ctx?.oidc ?? {}
  if (route !== 'end_session_confirm' || session === undefined) return undefined
  if (params?.logout !== undefined) return { uid: session.uid }
  // oidc-provider loads the client after it has called `backchannelLogout`, and forgets the state of the request after that.
  const client_id = entities?.Client?.clientId ?? session.state?.clientId
  return typeof client_id === 'string' ? { uid: session.uid, client_id } : undefined
}

/** The requests whose sign-out the clients were notified of. */
const notified = new WeakSet<object>()

/** Notifies clients of the sign-out by this request, once, and before anything is removed. */
export async function tellOfSignOut (ctx: KoaContextWithOIDC | undefined, tokens: Pick<Tokens, 'tellOfSignOut'>): Promise<void> {
  const signOut = findSignOut(ctx)
  if (ctx === undefined || signOut === undefined || notified.has(ctx)) return
  await tokens.tellOfSignOut(signOut.uid, signOut.client_id)
  notified.add(ctx)
}

/** The fields that only a session with a user has, and that alone which came of another provider. */
const OF_USER = ['user_id', 'user_epoch', 'signed_in_at', 'proofs', 'upstream_sid', 'last_used_at', 'place'] as const

const listUnset = (fields: Partial<SignInSessionRecord>): string[] => OF_USER.filter((field) => fields[field] === undefined)

export function adaptSignInSessions ({ store, tokens, times, sessionMax, addresses, standing, getContext }: AdapterParts): ModelAdapter {
  const sessions = store.collection<SignInSessionRecord>('sign_in_sessions')

  async function find (key: string, jti?: string): Promise<Payload | undefined> {
    const record = (await tokens.find<SignInSessionRecord>('sign_in_sessions', key))?.record
    if (record === undefined) return undefined
    const ctx = getContext()
    if (ctx !== undefined) remember(ctx, record)
    return toPayload(record, jti, times)
  }

  /** A sign-out at the browser ends the bound token sessions: all of them, or those of the client that requested the sign-out. */
  async function endBound (): Promise<void> {
    const signOut = findSignOut(getContext())
    if (signOut !== undefined) await tokens.endBoundGrants(signOut.uid, signOut.client_id)
  }

  /** The fields of a session with a signed-in user. Each use extends it, up to a limit that only another sign-in with a password moves. */
  function describeUser (ctx: KoaContextWithOIDC, payload: Payload, expiresIn: number) {
    const { signed_in_at = toTimestamp(times.now()), proofs = provePassword(signed_in_at) } = findSignIn(ctx) ?? findStoredSession(ctx) ?? {}
    const { expired_at } = times.lifetime(expiresIn)
    const last = toLifetime(Date.parse(findBeginning(proofs)), sessionMax).expired_at
    return {
      user_id: payload.accountId as string,
      user_epoch: requireUserEpoch(ctx),
      signed_in_at,
      proofs,
      upstream_sid: findIdentityProof(proofs)?.session,
      last_used_at: toTimestamp(times.now()),
      place: { ...describeDevice(ctx.get('user-agent'), keepAddress(ctx.ip, addresses)) },
      expired_at: expired_at < last ? expired_at : last
    }
  }

  return {
    async upsert (id, payload, expiresIn) {
      const ctx = getContext()
      await tellOfSignOut(ctx, tokens)
      const signedIn = typeof payload.accountId === 'string' && ctx !== undefined
      const key = hashToken(id)
      const stored = ctx === undefined ? undefined : findStoredSession(ctx)
      const fields = {
        uid: payload.uid as string,
        ...times.lifetime(expiresIn),
        ...(signedIn && describeUser(ctx, payload, expiresIn)),
        payload: toStored(payload)
      }
      // An update does not bring back a session that a sign-out has ended meanwhile.
      if (stored?.id === key) await sessions.update(key, { set: fields, unset: listUnset(fields) })
      else await sessions.put({ id: key, ...fields })
      await endBound()
      // The end of a sign-in at its provider is stored before it looks for sessions: either it finds this one, or this check finds the end.
      if (signedIn && await standing?.isEndedFor(payload.accountId as string, findIdentityProof(requireProofs(ctx)), findSignIn(ctx) !== undefined) === true) {
        await tokens.endSignIn(fields.uid)
      }
    },
    async find (id) {
      const payload = await find(hashToken(id), id)
      // The browser's cookie identifies the caller.
      if (typeof payload?.accountId === 'string') nameCaller({ user_id: payload.accountId })
      return payload
    },
    async findByUid (uid) {
      // Two tabs that sign in at once create two sessions with one uid. Any valid one will do: the caller checks the user.
      for await (const batch of scan(sessions, { equal: { uid } }, { urgent: true })) {
        for (const { id } of batch) {
          const payload = await find(id)
          if (payload !== undefined) return payload
        }
      }
      return undefined
    },
    async destroy (id) {
      const signOut = findSignOut(getContext())
      // A session is also destroyed when it gets a new id, as after a sign-in or a sign-out of one client.
      if (signOut !== undefined && signOut.client_id === undefined) return await tokens.endSignIn(signOut.uid)
      await tellOfSignOut(getContext(), tokens)
      await sessions.delete(hashToken(id))
      await endBound()
    }
  }
}
