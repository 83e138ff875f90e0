/**
 * A share in words: "42.0 %", "4.2 %", "under 0.1 %" or "0 %".
 *
 * @param {number} share from 0 to 1.
 * @returns {string}
 */
export function formatShare(share) {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.05) {
    return "under 0.1 %";
  }
  return percent === 0 ? "0 %" : `${percent.toFixed(1)} %`;
}

/**
 * A number with its digits in groups: 12,345.
 *
 * @param {number} number
 * @returns {string}
 */
export function formatCount(number) {
  return number.toLocaleString("en");
}
