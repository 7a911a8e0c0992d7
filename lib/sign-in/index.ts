/**
 * How people sign in.
 * @module
 */
import type { Base } from '../base.ts'
import { nameCaller } from '../events/origin.ts'
import type { Users } from '../users/users.ts'
import { createEnrolments } from '../ways/enrolments.ts'
import type { FactorChanges } from '../ways/factor-changes.ts'
import type { Factors } from '../ways/factors.ts'
import type { Passkeys } from '../ways/passkeys.ts'
import type { WayService } from '../ways/ways.ts'
import { createFirstSecrets } from './first-secrets.ts'
import { type JudgeParts, createJudge } from './may-sign-in.ts'
import { type RecordParts, createSignInRecord } from './record.ts'
import { createSignIns } from './sign-ins.ts'
import { createRecoveryStep, createTotpStep } from './steps/code.ts'
import { createEnrolPasskeyStep } from './steps/enrol-passkey.ts'
import { type EnrolActor, createEnrolStep } from './steps/enrol.ts'
import { createKeepCodesStep } from './steps/keep-codes.ts'
import { createPasskeyStep } from './steps/passkey.ts'
import { createPasswordStep } from './steps/password.ts'

interface SignInParts extends Base, Pick<JudgeParts, 'policy' | 'isOver'>, Pick<RecordParts, 'failures'> {
  users: Pick<Users, 'signIn'>
  ways: WayService
  factors: Factors & Pick<FactorChanges, 'addFactor' | 'renewCodes'>
  passkeys: Passkeys
  /** The folder of the file with the first administrator's password. */
  directory: string
  onWarning: (message: string) => void
}

/** Opens the steps of sign-ins, in their order, and the judgement about what they have proved. */
export function openSignIns (parts: SignInParts) {
  const { store, now, users, ways, factors, passkeys } = parts
  const enrolments = createEnrolments<EnrolActor>({ store, ways, factors, addFactor: factors.addFactor })
  const passkeySteps = createPasskeyStep(passkeys)
  const removeFirstSecrets = createFirstSecrets(parts)
  const maySignIn = createJudge(parts)
  const record = createSignInRecord({ ...parts, maySignIn })

  return {
    enrolments,
    maySignIn,
    signIns: createSignIns({
      store,
      now,
      places: [[createPasswordStep(users), passkeySteps.first], [passkeySteps.later, createTotpStep(factors), createRecoveryStep(factors)]],
      enrolments: [createEnrolStep(enrolments), createEnrolPasskeyStep(passkeys, enrolments)],
      closing: createKeepCodesStep(factors),
      areRestricted: ways.areRestricted,
      maySignIn,
      async onDone (done, asked) {
        nameCaller({ user_id: done.user_id })
        await record.succeed(done, asked)
        await removeFirstSecrets(done.user_id)
      },
      onRefused: record.refuse
    })
  }
}
