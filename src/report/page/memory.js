// What is in L1 and DRAM as the model runs, and what tile padding costs.

function showMemory() {
  document.querySelector('#memory .body').append(noProfile('Memory over time'));
  document.querySelector('#waste .body').append(noProfile('The waste of tile padding'));
}
