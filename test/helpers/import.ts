import type { ImportItem, ImportLine, ImportOptions, ImportReport, ImportVerdict } from '../../schemas/import.ts'
import type { Services } from '../../lib/services.ts'

/** `first` as bcrypt of Python has it. */
export const BCRYPT = '$2b$05$KT0wB1.jJmMU1NuFB4JDm.2.TEOuCNGPCzaBPBlaaxG3JbeF5EFzi'

/** Imports values as lines; by default from the source `old`. */
export async function importLines (
  { imports }: Pick<Services, 'imports'>, lines: readonly (Partial<ImportLine> | unknown)[], options: Partial<ImportOptions> = {}
): Promise<{ run: string, verdicts: ImportVerdict[], report: ImportReport }> {
  const items: ImportItem[] = lines.map((value, index) => ({ line: index + 1, value }))
  const { run, verdicts, report } = await imports.importUsers((async function * () { yield items })(), { source: 'old', ...options })
  return { run, verdicts: (await Array.fromAsync(verdicts)).flat(), report }
}
