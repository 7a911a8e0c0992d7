import type { Reason } from '../../schemas/reason.ts'
import type { Base } from '../base.ts'
import { defined } from '../defined.ts'
import type { Failures } from '../events/failures.ts'
import type { Happening } from '../events/types.ts'
import type { Proof } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import type { Way } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayService } from '../ways/ways.ts'
import type { MaySignIn } from './may-sign-in.ts'
import type { SignInRequest, SignedIn } from './sign-ins.ts'
import type { RefusedSignIn } from './steps/step.ts'

export interface RecordParts extends Pick<Base, 'store' | 'recorder'> {
  maySignIn: MaySignIn
  ways: Pick<WayService, 'get'>
  failures: Pick<Failures, 'recordSignIn' | 'recordIdentity' | 'defer'>
}

const toMethod = ({ kind, way }: Pick<Proof, 'kind' | 'way'>): NonNullable<Happening['method']> => ({ kind, id: way })

/** Records how sign-ins end, with the method that began them. */
export function createSignInRecord ({ store, recorder, maySignIn, ways, failures }: RecordParts) {
  const users = store.collection<UserRecord>('users')

  /** The identity that a sign-in began with. */
  async function findIdentity (user_id: string, proofs: readonly Proof[]): Promise<Omit<Way, 'at'> | undefined> {
    const proof = proofs.find(({ kind }) => kind === 'upstream')
    const user = proof && await users.get(user_id)
    return user ? (await ways.get(user, proof.way))?.way : undefined
  }

  /** Why what was proved does not stand any more, by the judge that refused it. */
  async function findEnd ({ user_id, user_epoch: epoch, proofs }: RefusedSignIn, client_id: string | undefined): Promise<Reason> {
    const judged = await maySignIn({ user_id, epoch, proofs, client_id })
    return !judged.may && judged.because === 'ended' ? judged.reason : 'method_lost'
  }

  return {
    /** Records a sign-in. Durable when this resolves. */
    async succeed ({ user_id, proofs, strength: { amr, acr } }: SignedIn, { client_id }: SignInRequest): Promise<void> {
      const [first] = proofs
      const way = await findIdentity(user_id, proofs)
      await recorder.insert(defined({
        type: 'sign_in.succeeded' as const, id: user_id, amr, acr, client_id, method: first && toMethod(first), via: way && showIdentity(way)
      }))
    },

    /** Records a refusal, after the response. */
    refuse (refused: RefusedSignIn, { client_id }: SignInRequest): void {
      const { user_id, proofs, kind, reason } = refused
      const [first] = proofs
      failures.defer(async () => {
        const found = reason === 'ended' ? await findEnd(refused, client_id) : reason
        const method = kind === undefined ? first && toMethod(first) : { kind }
        const failed = { reason: found, isKnown: true, ...(method && { method }) }
        const way = await findIdentity(user_id, proofs)
        if (way === undefined) failures.recordSignIn(user_id, '', failed)
        else failures.recordIdentity(user_id, showIdentity(way), failed)
      })
    }
  }
}
