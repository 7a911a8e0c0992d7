import type { Options } from '../../schemas/options.ts'
import type { RoleNames } from '../roles.ts'
import type { MigratorOptions } from '../store/migrator.ts'
import { LAYOUT } from '../store/state.ts'
import { createAuthorityCheck } from '../upstreams/authority.ts'
import { createMarking } from '../user-changes/administrators.ts'

/** What a start with these options makes of the documents of an earlier release, or of a start with other options. */
export async function configureMigration (
  { roles, upstreams = [] }: { roles: RoleNames, upstreams?: Options['upstreams'] | undefined }
): Promise<Pick<MigratorOptions, 'layout' | 'marking' | 'judging'>> {
  // Without upstreams nobody knows which of them are authorities: a command may run without the settings of the service.
  const judging = upstreams.length === 0 ? undefined : (await import('../upstreams/earlier-addresses.ts')).createAddressJudging(createAuthorityCheck(upstreams))
  return { layout: LAYOUT, marking: createMarking(roles.admin), judging }
}
