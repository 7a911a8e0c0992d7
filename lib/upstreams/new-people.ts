import type { Accounts } from '../accounts/index.ts'
import type { Base } from '../base.ts'
import { checkAccount } from '../checks.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { Happening } from '../events/types.ts'
import { generateId } from '../ids.ts'
import type { Language } from '../pages/texts/language.ts'
import { createUserRecord, isAddress, isOfDomain } from '../records/user.ts'
import type { Proved } from '../proofs.ts'
import { proveAddress } from '../user-changes/address-proof.ts'
import type { FormerNames } from '../users/former-names.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import { isInUse } from '../ways/credentials.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayService } from '../ways/ways.ts'
import { toNewRoles } from './claimed-roles.ts'
import { UpstreamError } from './failure.ts'
import { nameUpstream } from './kinds.ts'
import { type Linking, type Proven, toNew } from './linking.ts'
import type { ProvenIdentities } from './proven-identities.ts'

export interface NewPeopleParts extends Pick<Base, 'now'> {
  ways: Pick<WayService, 'prepareNew'>
  accounts: Pick<Accounts, 'suggestAddress'>
  names: Pick<FormerNames, 'checkChosen'>
  signUp: boolean
  signUpDomains?: readonly string[] | undefined
}

/** Makes accounts of people whom nobody here knows. */
export function createNewPeople ({
  now, ways, accounts, names, signUp, signUpDomains, insertUser, removeUser, findProved, toProved
}: NewPeopleParts & Pick<StoredUsers, 'insertUser' | 'removeUser'> & Pick<ProvenIdentities, 'findProved'> & Pick<Linking, 'toProved'>) {
  const isTakenName = (error: unknown): boolean => error instanceof IdentityError && error.code === 'ErrParam'

  /** Whether somebody may make themselves an account with what was proved. @throws UpstreamError with the reason */
  function checkMayCreate ({ upstream, claimed: { address } }: Proven): void {
    if (!upstream.create || !signUp) throw new UpstreamError('unknown')
    if (signUpDomains === undefined) return
    if (address === undefined) throw new UpstreamError('no_address')
    if (!isOfDomain(address, signUpDomains)) throw new UpstreamError('domain')
  }

  return {
    checkMayCreate,

    /**
     * Makes the account of a new person. The record names the identity from the first write on.
     * @param account their choice. Without a proved address it must not be an address
     * @throws ErrParam for an account that is taken or wrong, UpstreamError
     */
    async create (proven: Proven, account: string, language: Language | undefined): Promise<Proved> {
      checkMayCreate(proven)
      const { upstream, claimed: { address, seen, name, roles } } = proven
      const chosen = checkAccount(account.trim())
      if (chosen !== address && isAddress(chosen)) throw paramError('account', 'must not be an address, because none was proved')
      if (chosen !== address) await names.checkChosen(chosen)
      const id = generateId(now())
      const made = await ways.prepareNew(id, toNew(proven))
      const proof = address === undefined ? {} : proveAddress(address, { upstream: upstream.id }, now())
      const record = createUserRecord(now(), {
        id, account: chosen, ...proof, ...toNewRoles(upstream, roles), name, info: {}, ...made.fields, language
      }, false)
      const happened: Happening[] = [
        { type: 'user.signed_up', id, granted: Object.keys(record.roles) }, { type: 'identity.linked', id, via: showIdentity(toNew(proven)) }
      ]
      try {
        await insertUser(record, happened, () => paramError('account', 'is taken'))
      } catch (error) {
        await made.drop(error)
        if (!isInUse(error) && !isTakenName(error)) throw error
        // Another sign-in with the same identity may have come first. A store says one of the fields that clash.
        const proved = await findProved(proven)
        if (proved !== null) return proved
        throw isTakenName(error) && chosen !== address ? error : new UpstreamError('taken')
      }
      // Somebody of this name may have been deleted since: their name was remembered before.
      if (chosen !== address) {
        await names.checkChosen(chosen).catch(async (error: unknown) => {
          await removeUser(id)
          throw error
        })
      }
      if (seen !== undefined) await accounts.suggestAddress(record, seen, nameUpstream(upstream), language)
      return toProved(record, made.id, proven)
    }
  }
}
