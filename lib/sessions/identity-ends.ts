import { createBrowsers } from '../browsers/browsers.ts'
import { type Proof, findIdentityProof } from '../proofs.ts'
import type { GrantRecord } from '../records/token.ts'
import type { Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { Tokens } from '../tokens/tokens.ts'

/**
 * What an identity has proved in the sign-in of a token session. A record of an earlier release does not say it: a sign-in without a
 * password and a passkey was one with an identity.
 */
export function findGrantProof (
  { upstream_proof, session_uid, auth }: Pick<GrantRecord, 'upstream_proof' | 'session_uid' | 'auth'>
): Partial<Proof> | undefined {
  if (upstream_proof !== undefined || session_uid === undefined || auth === undefined) return upstream_proof
  return auth.amr.some((method) => method === 'pwd' || method === 'pop') ? undefined : { kind: 'upstream' }
}

/** Whether a proof is one of this identity. A record of an earlier release may not say of which one it is: then it is of each. */
const isOf = (proof: Partial<Proof> | undefined, way: string): boolean => proof?.kind === 'upstream' && (proof.way ?? way) === way

/**
 * Ends what came of a sign-in with an identity at another provider: the sign-in sessions of browsers, with all that is bound to them, and
 * token sessions. It may be called again after an interruption.
 */
export function createIdentityEnds ({ store, tokens }: { store: Store, tokens: Pick<Tokens, 'endSignIn' | 'endGrant' | 'tellOfSignOut'> }) {
  const grants = store.collection<GrantRecord>('grants')
  const browsers = createBrowsers(store)

  /** Tells the client, and ends its token session. */
  async function endGrant ({ id, client_id, session_uid }: GrantRecord): Promise<void> {
    if (session_uid !== undefined) await tokens.tellOfSignOut(session_uid, client_id)
    await tokens.endGrant(id)
  }

  return {
    /** The users with a sign-in or a token session that came of this session at a provider, each with the id of the identity. */
    async findHolders (upstream_sid: string): Promise<Map<string, string>> {
      const holders = new Map<string, string>()
      for await (const batch of browsers.readOfUpstream(upstream_sid)) {
        for (const { user_id, proofs = [] } of batch) if (user_id !== undefined) holders.set(user_id, findIdentityProof(proofs)?.way ?? '')
      }
      for await (const batch of scan(grants, { equal: { upstream_sid } }, { urgent: true })) {
        for (const { user_id, upstream_proof } of batch) holders.set(user_id, upstream_proof?.way ?? '')
      }
      return holders
    },

    /** Ends what came of a session at a provider. @param offline whether token sessions with offline access end too */
    async endSession (upstream_sid: string, offline: boolean): Promise<void> {
      for await (const batch of browsers.readOfUpstream(upstream_sid)) for (const { uid } of batch) await tokens.endSignIn(uid)
      for await (const batch of scan(grants, { equal: { upstream_sid } }, { urgent: true })) {
        for (const grant of batch) if (offline || grant.bound === true) await endGrant(grant)
      }
    },

    /**
     * Ends what came of an identity of a user.
     * @param isEnded whether a sign-in that was proved so has ended
     */
    async endIdentity (user_id: string, way: string, offline: boolean, isEnded: (proof: Partial<Proof>) => boolean): Promise<void> {
      for await (const batch of browsers.readOf(user_id)) {
        for (const { uid, proofs = [] } of batch) {
          const proof = findIdentityProof(proofs)
          if (proof !== undefined && isOf(proof, way) && isEnded(proof)) await tokens.endSignIn(uid)
        }
      }
      for await (const batch of scan(grants, { equal: { user_id } }, { urgent: true })) {
        for (const grant of batch) {
          const proof = findGrantProof(grant)
          if (proof !== undefined && isOf(proof, way) && isEnded(proof) && (offline || grant.bound === true)) await endGrant(grant)
        }
      }
    }
  }
}

export type IdentityEnds = ReturnType<typeof createIdentityEnds>
