/**
 * How people sign in.
 * @module
 */
import type { Clock } from '../clock.ts'
import { nameCaller } from '../events/origin.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Proof } from '../proofs.ts'
import type { UserRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import type { Users } from '../users/users.ts'
import { createEnrolments } from '../ways/enrolments.ts'
import type { Factors } from '../ways/factors.ts'
import { showIdentity } from '../ways/identity.ts'
import type { MaySignIn } from '../ways/may-sign-in.ts'
import type { Passkeys } from '../ways/passkeys.ts'
import type { WayService } from '../ways/ways.ts'
import { createFirstSecrets } from './first-secrets.ts'
import { createSignIns } from './sign-ins.ts'
import { createRecoveryStep, createTotpStep } from './steps/code.ts'
import { createEnrolPasskeyStep } from './steps/enrol-passkey.ts'
import { type EnrolActor, createEnrolStep } from './steps/enrol.ts'
import { createKeepCodesStep } from './steps/keep-codes.ts'
import { createPasskeyStep } from './steps/passkey.ts'
import { createPasswordStep } from './steps/password.ts'

interface SignInParts {
  store: Store
  now: Clock
  recorder: Pick<Recorder, 'insert'>
  users: Pick<Users, 'signIn'>
  ways: WayService
  factors: Factors
  passkeys: Passkeys
  maySignIn: MaySignIn
  /** The folder of the file with the first administrator's password. */
  directory: string
  /** Names what was proved, and tells the user. */
  addFactor: (actor: EnrolActor, ids: readonly string[]) => Promise<UserRecord>
  renewCodes: (actor: EnrolActor, id: string) => Promise<unknown>
  onWarning: (message: string) => void
}

/** Opens the steps of sign-ins, in their order. */
export function openSignIns ({ store, now, recorder, users, ways, factors, passkeys, maySignIn, directory, addFactor, renewCodes, onWarning }: SignInParts) {
  const records = store.collection<UserRecord>('users')
  const enrolments = createEnrolments<EnrolActor>({ store, ways, factors, addFactor })
  const passkeySteps = createPasskeyStep(passkeys)
  const removeFirstSecrets = createFirstSecrets({ store, directory, onWarning })

  /** Records a sign-in, with the identity that it began with. */
  async function record (user_id: string, proofs: readonly Proof[]): Promise<void> {
    const via = proofs.find(({ kind }) => kind === 'upstream')
    const user = via && await records.get(user_id)
    const way = user && (await ways.get(user, via.way))?.way
    await recorder.insert({ type: 'sign_in.succeeded', id: user_id, ...(way && { via: showIdentity(way) }) })
  }

  return {
    enrolments,
    signIns: createSignIns({
      store,
      now,
      places: [[createPasswordStep(users), passkeySteps.first], [passkeySteps.later, createTotpStep(factors), createRecoveryStep(factors)]],
      enrolments: [createEnrolStep(enrolments), createEnrolPasskeyStep(passkeys, enrolments)],
      closing: createKeepCodesStep({ prepareCodes: factors.prepareCodes, renewCodes }),
      areRestricted: ways.areRestricted,
      maySignIn,
      async onDone (user_id, proofs) {
        nameCaller({ user_id })
        await record(user_id, proofs)
        await removeFirstSecrets(user_id)
      }
    })
  }
}
